// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// Where operators look, under a real systemd.
@Suite("Secrets of a service")
struct ServiceSecrecyTests {
    /// Three secrets that are nobody's default: one that goes along with every request, one that is rejected, one that opens a keyring.
    private static let secrets = ["goes-along-7f3a91c2", "rejected-5be2d0a4", "opens-0c9d44e8"]

    private static let configuration = """
        listeners:
          - { address: "systemd:countersign", upstream: server }
        access-log: { format: json, to: /var/log/countersign/access.log, query: false }
        admin: { address: ["unix:/run/countersign/admin.sock", "127.0.0.1:8099"] }
        upstreams:
          server: { url: "http://127.0.0.1:8081/" }
        credentials:
          sources: [exec: [/opt/helper], systemd, keyring: /var/lib/countersign/keyring]
        challenges:
          - { name: key, upstream: server, credential: api, inject: { X-Api-Key: "{key}" } }
          - { name: page, at: "http://127.0.0.1:8081/form/*", gateway: j-security-check, credential: page }

        """

    @Test("stand in no journal, metric, page, command, process table, core dump and directory")
    func nowhere() async throws {
        var scenario = SystemdScenario(configuration: Self.configuration)
        scenario.files = [
            "/etc/countersign/secrets/keyring-passphrase": Self.secrets[2],
            "/etc/systemd/system/inside.service": """
            [Service]
            Type=oneshot
            DynamicUser=yes
            User=countersign
            StateDirectory=countersign
            LoadCredential=keyring-passphrase:/etc/countersign/secrets/keyring-passphrase
            ExecStart=/bin/sh /run/inside.sh
            StandardOutput=truncate:/run/inside
            StandardError=file:/run/inside

            """,
            // One that says too much on its standard error.
            "/opt/helper": """
            #!/bin/sh
            read -r question
            case $question in
            *page*)
                echo "the password of ann is \(Self.secrets[1])" >&2
                echo '{"fields": {"username": "ann", "password": "\(Self.secrets[1])"}}' ;;
            *) echo '{}' ;;
            esac

            """,
        ]
        scenario.dropIn = """
            [Service]
            LoadCredential=keyring-passphrase:/etc/countersign/secrets/keyring-passphrase
            LimitCORE=infinity

            """
        try await scenario.run(
            """
            along=\(Self.secrets[0])
            rejected=\(Self.secrets[1])
            opens=\(Self.secrets[2])

            """ + #"""
                chmod +x /opt/helper

                step "a keyring"
                # A command as the daemon's user and with its credentials; its output stands in /run/inside.
                inside() {
                    echo "$*" >/run/inside.sh
                    systemctl start inside.service
                }
                inside countersign keyring init
                inside "printf %s $along | countersign keyring set api key"
                rm /run/inside.sh

                systemctl start countersign.socket

                step "everything happens: use, rejection, latch, a helper that talks, an upstream that breaks"
                curl -fsS -o /dev/null 'http://127.0.0.1:8080/?token=query-of-callers'
                fails curl -fsS -o /dev/null http://127.0.0.1:8080/form/
                fails curl -fsS -o /dev/null http://127.0.0.1:8080/form/
                [ "$(grep -c "answer to form rejected" demo.log)" = 1 ]
                systemctl reload countersign.service
                curl -fsS -o /dev/null http://127.0.0.1:8080/

                step "what operators see"
                mkdir seen
                seen() {
                    local name=$1
                    shift
                    "$@" >"seen/$name" 2>&1 || true
                    [ -s "seen/$name" ] || { echo "empty: $name"; return 1; }
                }
                for path in metrics status 'healthz?verbose' 'readyz?verbose' ''; do
                    seen "admin-${path%%\?*}" curl -sS "http://127.0.0.1:8099/$path"
                done
                seen html curl -sS -H 'Accept: text/html' http://127.0.0.1:8099/
                seen reply curl -sS http://127.0.0.1:8080/form/
                fails countersign status >seen/command-status
                countersign sessions list >seen/command-sessions
                for what in doctor check 'login key' 'login page'; do
                        inside countersign "$what" 2>/dev/null || true
                mv /run/inside "seen/command-${what// /-}"
                done
                pid=$(show MainPID)
                cp /proc/$pid/environ /proc/$pid/cmdline /proc/$pid/status seen/
                seen show systemctl show countersign.service
                seen unit-status systemctl status --no-pager --lines=1000 countersign.service
                cp -r /var/lib/private/countersign seen/state
                cp -rL /var/log/countersign seen/logs
                [ "$(grep -c '"path":"/form/"' seen/logs/access.log)" -ge 2 ]
                cp -r /run/countersign seen/runtime 2>/dev/null || true

                step "a crash leaves no core dump"
                kill -ABRT "$pid"
                # A function, so that each try asks anew.
                restarted() { [ "$(show MainPID)" != "$pid" ]; }
                eventually restarted
                eventually curl -fsS -o /dev/null http://127.0.0.1:8080/
                fails sh -c 'find / -xdev -name "core*" -newer demo.log -size +100k -not -path "/proc/*" | grep .'
                journalctl --sync
                seen journal journalctl --no-pager -o export
                grep -q 'login-rejected\|login failed' seen/journal

                step "nobody finds them"
                grep -c . seen/journal
                fails grep -rFaoe "$along" -e "$rejected" -e "$opens" -e query-of-callers seen
                for secret in "$along" "$rejected" "$opens"; do
                    fails grep -rFaoe "$(printf %s "$secret" | base64)" seen
                done
                # The search finds what is there.
                echo "x $rejected x" >seen/planted
                grep -rqFae "$rejected" seen
                step "end"
                """#)
    }
}
