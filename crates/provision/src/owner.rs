//! `USER[:GROUP]`, by name or number.

use linux::names;

use crate::Error;

/// The UID, and the GID that is named, else the user's primary group (0 for a number without an account).
///
/// # Errors
/// [`Error::Unknown`].
pub fn owner(text: &str) -> Result<(u32, u32), Error> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let account = names::user(user);
    let unknown = |kind, name: &str| Error::Unknown { kind, name: name.into() };
    let number = user.parse().ok().or(account.map(|(uid, _)| uid)).ok_or_else(|| unknown("user", user))?;
    let group = match group {
        Some(group) => group.parse().ok().or_else(|| names::group(group)).ok_or_else(|| unknown("group", group))?,
        None => account.map_or(0, |(_, gid)| gid),
    };
    Ok((number, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_name_or_a_number_with_or_without_a_group() {
        assert_eq!(owner("root").unwrap(), (0, 0));
        assert_eq!(owner("0:0").unwrap(), (0, 0));
        assert_eq!(owner("4711").unwrap(), (4711, 0));
        assert_eq!(owner("4711:root").unwrap(), (4711, 0));
        for (wrong, said) in
            [("no-such-user", "user 'no-such-user'"), ("root:no-such", "group 'no-such'"), ("", "user ''")]
        {
            assert!(owner(wrong).unwrap_err().to_string().contains(said), "{wrong}");
        }
    }
}
