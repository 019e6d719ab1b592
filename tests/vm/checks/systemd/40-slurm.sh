# Slurm where systemd gives it a scope of cgroup v2, with the same checks as on v1.
ip addr add 192.0.2.1/32 dev lo # with no address but the loopback's, Slurm resolves no name
place=/disk/place
mkdir $place
ln -s /disk/bin/bursar /disk/bin/scan $place
echo "optional /disk/bin/spank_bursar.so bursar=$place/bursar" >$place/plugstack.conf
chown nobody $place
as_nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=$place BURSAR=/disk/bin/bursar)
SLURM_LOGS=/out SLURM_PLUGSTACK=$place/plugstack.conf /disk/slurm/with-slurm cgroup \
    "${as_nobody[@]}" salloc --quiet --ntasks=1 --mem=800 /disk/slurm/checks $place 4 ||
    echo "not ok Slurm ran the checks: status $?"
