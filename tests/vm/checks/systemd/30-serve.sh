# The unit of bursar serve as `make install` leaves it, begun by systemd: it may do nothing, and that is enough.
install -D /disk/bin/bursar /usr/local/bin/bursar
install -D -m 644 /disk/bursar-serve.service /usr/local/lib/systemd/system/bursar-serve.service
systemctl daemon-reload
holds "the unit starts" systemctl start bursar-serve
scrape() {
    for _ in {1..100}; do
        { exec 3<>/dev/tcp/127.0.0.1/19676; } 2>/dev/null && break
        sleep 0.1
    done
    printf 'GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n' >&3
    tr -d '\r' <&3
    exec 3>&-
}
# Before its first scan is complete it answers 503, at once.
for _ in {1..300}; do
    scrape >/out/metrics
    grep -qx 'HTTP/1.1 503 Service Unavailable' /out/metrics || break
    sleep 0.1
done
holds "it answers" grep -qx 'HTTP/1.1 200 OK' /out/metrics
holds "to the end" test "$(tail -n 1 /out/metrics)" = "# EOF"
own='bursar_cgroup_charge_bytes{cgroup="/system.slice/bursar-serve.service",kind="service",unit="bursar-serve.service"}'
holds "it tells of itself, as of every service" grep -qF "$own" /out/metrics
holds "and of a user's manager" grep -q '^bursar_cgroup_working_set_bytes{.*unit="user@4242.service"' /out/metrics
holds "pressure is told" grep -q '^bursar_cgroup_pressure_seconds_total{.*unit="bursar-serve.service"' /out/metrics
status=/proc/$(systemctl show -P MainPID bursar-serve)/status
holds "it is a user of its own" awk '/^Uid:/ {exit !($2 >= 61184 && $2 <= 65519)}' "$status"
holds "who is capable of nothing" grep -q '^CapBnd:\s*0000000000000000$' "$status"
systemctl kill -s KILL bursar-serve
again() { test "$(systemctl show -P NRestarts bursar-serve)" = 1 && scrape | grep -qF "$own"; }
until again; do sleep 0.1; done
holds "killed, it is started again" systemctl -q is-active bursar-serve
systemctl stop bursar-serve
holds "stopped, it ends well" test "$(systemctl show -P Result -P ExecMainStatus bursar-serve | tr '\n' ' ')" = "success 0 "
