use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::*;

/// Gives a link to the user nobody; false without root.
fn give_to_nobody(link: &Path) -> bool {
    let given = std::os::unix::fs::lchown(link, Some(65534), Some(65534)).is_ok();
    if !given {
        println!("SKIPPED: only root can make a link of another user");
    }
    given
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut out = Output::create(path)?;
    out.write_all(text.as_bytes())?;
    out.commit()
}

#[test]
fn a_planted_link_never_leads_a_new_file_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let victim = tempfile::tempdir().unwrap();
    let (old, new) = (victim.path().join("old"), victim.path().join("new"));
    fs::write(&old, "precious").unwrap();
    let stop = AtomicBool::new(false);
    let name = Path::new("r.bursar");
    std::thread::scope(|scope| {
        // The owner of the folder replaces everything that appears in it by links, also the name itself.
        scope.spawn(|| {
            let mut turn = false;
            while !stop.load(Ordering::Relaxed) {
                turn = !turn;
                let target = if turn { &old } else { &new };
                let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
                for path in names.chain([folder.path().join(name)]) {
                    let _ = fs::remove_file(&path);
                    let _ = symlink(target, &path);
                }
            }
        });
        for _ in 0..1000 {
            let own = Folder::open(folder.path()).unwrap();
            let mut file = own.replace(name.as_os_str(), PRIVATE_FILE).unwrap();
            file.write_all(b"result").unwrap();
            // The attacker may have removed the random name: nothing is written then.
            let _ = file.commit();
            let own = Folder::open(folder.path()).unwrap();
            let _ = own.create_or_open(name.as_os_str()).map(|mut file| file.write_all(b"lock"));
            let _ = own.create_new(name.as_os_str(), PRIVATE_FILE);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(&old).unwrap(), "precious");
    assert!(!new.exists(), "no file was made where a link led");
}

#[test]
fn links_of_the_caller_are_followed_and_links_of_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = folder.path().join("link");
    symlink("real", &link).unwrap();
    write(&link.join("out"), "mine").unwrap();
    assert_eq!(fs::read_to_string(real.join("out")).unwrap(), "mine");
    let to_file = folder.path().join("to-file");
    symlink("real/out", &to_file).unwrap();
    write(&to_file, "through my link").unwrap();
    assert_eq!(fs::read_to_string(real.join("out")).unwrap(), "through my link");
    if !give_to_nobody(&link) {
        return;
    }
    let refused = write(&link.join("out"), "theirs").unwrap_err();
    assert!(refused.to_string().contains("link is a symbolic link of user 65534"), "{refused}");
    give_to_nobody(&to_file);
    write(&to_file, "in place of their link").unwrap();
    assert_eq!(fs::read_to_string(real.join("out")).unwrap(), "through my link");
    assert!(fs::symlink_metadata(&to_file).unwrap().is_file());
}

#[test]
fn devices_pipes_and_open_files_are_written_to() {
    let folder = tempfile::tempdir().unwrap();
    write(Path::new("/dev/null"), "text").unwrap();
    assert!(write(Path::new("/dev/full"), "text").is_err());
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            fs::File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    write(&pipe, "through the pipe").unwrap();
    assert_eq!(reader.join().unwrap(), "through the pipe");
    assert!(!fs::metadata(&pipe).unwrap().is_file(), "it is a pipe still");
    let open = tempfile::tempfile().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
    (&open).write_all(b"before, ").unwrap();
    write(Path::new(&path), "after").unwrap();
    assert_eq!(open.metadata().unwrap().len(), "before, after".len() as u64, "it goes on where the descriptor is");
    assert!(write(folder.path(), "text").is_err());
    assert!(write(&folder.path().join(".."), "text").is_err());
}

#[test]
fn a_check_fails_as_the_write_would_and_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
    fs::write(&file, "before").unwrap();
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [file.clone(), folder.path().join("new"), pipe, "/dev/null".into(), "/dev/stdout".into()] {
        Output::check(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    for path in ["none/new", "file/new", "."] {
        let path = folder.path().join(path);
        assert_eq!(Output::check(&path).unwrap_err().kind(), write(&path, "text").unwrap_err().kind());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert_eq!(Folder::open(folder.path()).unwrap().names().unwrap(), ["file", "pipe"]);
}

#[test]
fn a_file_that_is_written_has_no_further_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("victim"), "precious").unwrap();
    fs::hard_link(folder.path().join("victim"), folder.path().join("lock")).unwrap();
    let own = Folder::open(folder.path()).unwrap();
    assert!(own.create_or_open("lock".as_ref()).is_err());
    assert!(own.open_file("lock".as_ref(), OFlags::RDWR).is_err());
    assert!(own.open_file("lock".as_ref(), OFlags::RDONLY).is_ok());
    symlink("victim", folder.path().join("link")).unwrap();
    assert!(own.open_file("link".as_ref(), OFlags::RDONLY).is_err());
}

#[test]
fn a_private_folder_is_only_where_others_cannot_replace_it() {
    let folder = tempfile::tempdir().unwrap();
    let private = PrivateFolder::create_near(folder.path(), &mut |_| {}).unwrap();
    assert!(private.path().starts_with(folder.path()));
    assert_eq!(fs::metadata(private.path()).unwrap().mode() & 0o777, 0o700);
    fs::write(private.path().join("database"), "whole").unwrap();
    let own = Folder::open(folder.path()).unwrap();
    private.move_to("database", &own, "record".as_ref()).unwrap();
    assert_eq!(fs::metadata(folder.path().join("record")).unwrap().mode() & 0o777, 0o600);
    drop(private);
    assert_eq!(own.names().unwrap(), ["record"]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let private = PrivateFolder::create_near(folder.path(), &mut |_| {}).unwrap();
    assert!(!private.path().starts_with(folder.path()), "others could replace it");
    fs::write(private.path().join("database"), "whole").unwrap();
    private.move_to("database", &own, "other".as_ref()).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("other")).unwrap(), "whole");
}

#[test]
fn folders_are_made_for_their_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/c");
    assert!(Folder::create_all(&path).unwrap().is_own().unwrap());
    assert_eq!(fs::metadata(folder.path().join("a")).unwrap().mode() & 0o777, 0o700);
    Folder::create_all(&path).unwrap();
    let link = folder.path().join("link");
    symlink("nowhere", &link).unwrap();
    assert!(Folder::open(folder.path()).unwrap().create_folder("link".as_ref(), PRIVATE_FOLDER).is_err());
}
