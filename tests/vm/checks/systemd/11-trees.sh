# Records the files of an ordinary user's job as this kernel and this systemd make them.
dd if=/dev/urandom of=/disk/read bs=1M count=8 status=none
as_tester systemd-run --user --scope -q --unit=job -p MemoryMax=60M -p MemorySwapMax=0 scan read 24 8 100000 /disk/read &
until pgrep -x scan; do sleep 0.1; done
record systemd-user "$(pgrep -x scan)"
holds "the files of a user's scope were recorded" test -s /out/trees/systemd-user/sys/fs/cgroup/user.slice/user-4242.slice/user@4242.service/app.slice/job.scope/memory.stat
as_tester systemctl --user stop job.scope
