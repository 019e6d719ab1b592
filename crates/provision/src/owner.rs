//! `USER[:GROUP]`, by name or number.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr;

use crate::Error;

/// The user, and the group named or else the user's own (that of a number that has no account: root's).
///
/// # Errors
/// [`Error::Unknown`].
pub fn owner(text: &str) -> Result<(u32, u32), Error> {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let account = user_of(user);
    let unknown = |kind, name: &str| Error::Unknown { kind, name: name.into() };
    let number = user.parse().ok().or(account.map(|(uid, _)| uid)).ok_or_else(|| unknown("user", user))?;
    let group = match group {
        Some(group) => group.parse().ok().or_else(|| group_of(group)).ok_or_else(|| unknown("group", group))?,
        None => account.map_or(0, |(_, gid)| gid),
    };
    Ok((number, group))
}

/// Of the user database, which may be more than `/etc/passwd`.
fn user_of(name: &str) -> Option<(u32, u32)> {
    let name = CString::new(name).ok()?;
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut space = vec![0; 64 << 10];
    let mut found = ptr::null_mut();
    // SAFETY: all four live through the call, and the length is that of the space.
    unsafe { libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), space.as_mut_ptr(), space.len(), &raw mut found) };
    // SAFETY: what is found is `entry`, filled in.
    (!found.is_null()).then(|| unsafe { (entry.assume_init().pw_uid, entry.assume_init().pw_gid) })
}

fn group_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut entry = MaybeUninit::<libc::group>::zeroed();
    let mut space = vec![0; 64 << 10];
    let mut found = ptr::null_mut();
    // SAFETY: all four live through the call, and the length is that of the space.
    unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), space.as_mut_ptr(), space.len(), &raw mut found) };
    // SAFETY: what is found is `entry`, filled in.
    (!found.is_null()).then(|| unsafe { entry.assume_init().gr_gid })
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
