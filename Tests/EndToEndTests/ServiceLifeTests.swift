// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// What goes wrong with a service, under a real systemd.
@Suite("A service under a real systemd")
struct ServiceLifeTests {
    @Test("refuses a wrong configuration by status, journal and exit of a reload, and serves on by the old one")
    func reload() async throws {
        var scenario = SystemdScenario()
        scenario.files["/etc/systemd/system/extra.socket"] = """
            [Socket]
            FileDescriptorName=extra
            ListenStream=127.0.0.1:8085
            Service=countersign.service

            """
        try await scenario.run(
            #"""
            configuration=/etc/countersign/countersign.yaml
            cp $configuration right
            systemctl start countersign.socket
            balance | grep -F '1,438.20'
            before=$(show MainPID)
            show StatusText | grep '^Serving bank, server at systemd:countersign\.$'

            step "a reload takes up what has changed"
            sed -i 's|path: /open/|path: /other/, strip-prefix: true|' $configuration
            fails curl -fs -o /dev/null http://127.0.0.1:8080/other/open/x
            systemctl reload countersign.service
            curl -fsS -o /dev/null http://127.0.0.1:8080/other/open/x

            step "errors are refused"
            sed -i 's|upstream: bank|upstream: banc|' $configuration
            fails systemctl reload countersign.service
            systemctl is-active countersign.service
            show StatusText | grep "^Reload refused, the old configuration stays: $configuration:3:15: listeners\[0\]\.upstream: .* (and 1 more)"
            eventually sh -c "journalctl --no-pager -u countersign.service PRIORITY=3 -o cat | grep '^reload refused'"
            eventually sh -c "journalctl --no-pager -u countersign.service -o cat | grep '^countersign: reload refused, the old'"
            balance >/dev/null
            curl -fsS -o /dev/null http://127.0.0.1:8080/other/open/x

            step "so are sockets that nobody passes or claims"
            sed 's|systemd:countersign|systemd:other|' right >$configuration
            fails systemctl reload countersign.service
            show StatusText | grep '^Reload refused.*systemd:other.*FileDescriptorName=other'
            balance >/dev/null

            step "a right one is taken up again"
            cp right $configuration
            systemctl reload countersign.service
            show StatusText | grep '^Serving bank'
            [ "$before" = "$(show MainPID)" ]
            [ "$(show NRestarts)" = 0 ]
            [ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

            step "entries of the journal have fields"
            journal countersign.service CHALLENGE=bank -o json | python3 -c '
            from json import loads
            from sys import stdin
            entry = [loads(line) for line in stdin if "login won" in line][0]
            assert entry["LOGGER"] == "audit" and entry["PRIORITY"] == "5" and entry["EXCHANGE_ID"], entry
            assert entry["CODE_FILE"].endswith("/LoginLog.swift") and int(entry["CODE_LINE"]) > 0, entry
            assert entry["CODE_FUNC"].startswith("write") and int(entry["TOOK_MS"]) >= 0, entry
            assert entry["SYSLOG_IDENTIFIER"] == "countersign" and entry["_TRANSPORT"] == "journal", entry
            '
            sed -i 's|http://127.0.0.1:8081/$|http://127.0.0.1:9/|' $configuration
            systemctl reload countersign.service
            fails curl -fs -o /dev/null http://127.0.0.1:8080/open/x
            eventually sh -c 'journalctl --no-pager UPSTREAM=server PRIORITY=4 -o cat | grep "^exchange failed"'

            step "elsewhere they are text on a terminal, and JSON in a file"
            sed 's|systemd:countersign|127.0.0.1:8087|' right >by-hand.yaml
            mkdir /run/by-hand
            export STATE_DIRECTORY=/run/by-hand RUNTIME_DIRECTORY=/run/by-hand
            countersign serve --config by-hand.yaml 2>json &
            eventually grep '^{"time":".*"level":"notice","logger":"daemon","message":"ready",' json
            kill $!
            wait $!
            script --quiet --flush --command "exec countersign serve --config by-hand.yaml" text >/dev/null &
            eventually grep 'notice.* ready listeners=127.0.0.1:8087' text
            countersign reload --config by-hand.yaml
            kill "$(ls /run/by-hand | sed -n 's/^reload\.//p')"
            wait $!
            unset STATE_DIRECTORY RUNTIME_DIRECTORY

            step "the start fails where a socket is not claimed, or not passed"
            cp right $configuration
            systemctl stop countersign.service
            systemctl start extra.socket
            fails systemctl start countersign.service
            [ "$(show ExecMainStatus)" = 78 ]
            show StatusText | grep '^Not started: .*"extra", which no listener'
            [ "$(show NRestarts)" = 0 ]
            systemctl stop extra.socket countersign.socket
            systemctl reset-failed
            fails systemctl start countersign.service
            show StatusText | grep '^Not started: .*systemd:countersign, which the service manager did not pass'

            step end
            """#)
    }

    @Test("is ended by the watchdog when a loop stands still, comes back, and drains within its time")
    func watchdog() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            WatchdogSec=2s
            RestartSec=100ms

            """
        scenario.files["/etc/countersign/slow.yaml"] = SystemdScenario.bank(listener: "127.0.0.1:8086")
        scenario.files["/usr/local/lib/hold.py"] = Self.hold
        try await scenario.run(
            #"""
            recovered() { [ "$(show NRestarts)" = "$1" ] && [ "$(show ActiveState)" = active ]; }
            systemctl start countersign.socket countersign@slow.service
            balance >/dev/null

            step "an endless stream is cut off before systemd would kill"
            curl -sN "http://127.0.0.1:8086/open/stream?lines=100000&pause=100" >endless &
            eventually test -s endless
            slow=$(show MainPID countersign@slow.service)
            systemctl stop --no-block countersign@slow.service
            stopping=$(date +%s)

            step "one loop of several stands still"
            before=$(show MainPID)
            worker=$(grep -lx worker-0 /proc/"$before"/task/*/comm | cut -d / -f 5)
            python3 /usr/local/lib/hold.py "$worker" &
            eventually recovered 1
            journal countersign.service -o cat | grep "^a worker's loop does not turn"
            journal countersign.service -o cat | grep -m 1 'Watchdog timeout'
            [ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]
            balance >/dev/null

            step "the whole process stands still"
            kill -STOP "$(show MainPID)"
            eventually recovered 2
            balance >/dev/null
            [ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

            step "a stop lets what is under way finish"
            curl -sN "http://127.0.0.1:8080/open/stream?lines=40&pause=50" >stream &
            stream=$!
            eventually test -s stream
            systemctl stop countersign.socket countersign.service
            wait "$stream"
            [ "$(grep -c '^data: tick' stream)" = 40 ]
            [ "$(show Result)" = success ]

            step "the endless one has ended"
            ended() { [ "$(show ActiveState countersign@slow.service)" = inactive ]; }
            eventually ended
            [ "$(show Result countersign@slow.service)" = success ]
            [ $(($(date +%s) - stopping)) -lt 35 ]
            # The journal may be behind; and of a process that is gone by then it knows the number, and no longer the unit.
            told() { journalctl --no-pager -o cat _PID="$slow" | grep '^exchanges were cut off by the end of the drain'; }
            eventually told
            step end
            """#)
    }

    /// Stops one thread by ptrace(2), for as long as it lives: SIGSTOP would stop the whole process.
    private static let hold = #"""
        from ctypes import CDLL, c_long, get_errno
        from os import waitpid
        from sys import argv
        libc = CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [c_long] * 4
        thread, seize, interrupt, wall = int(argv[1]), 0x4206, 0x4207, 0x40000000
        for request in (seize, interrupt):
            if libc.ptrace(request, thread, 0, 0) != 0: raise OSError(get_errno(), "ptrace")
        # Once when it stands still, once when it has ended.
        waitpid(thread, wall)
        waitpid(thread, wall)
        """#

    @Test("fails no request of 32 connections in a hundred reloads and twenty restarts")
    func steady() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            [Unit]
            StartLimitIntervalSec=0

            """
        scenario.limit = 150
        try await scenario.run(
            #"""
            logged() { [ "$(journal countersign.service -o cat | grep -c "$1")" = "$2" ]; }
            systemctl start countersign.socket
            balance >/dev/null
            cp /etc/countersign/countersign.yaml one
            sed 's|path: /open/|path: /open/, methods: [GET]|; $a limits: { callers: 512 }' one >two
            steady-callers --pause 0.05 --least 1000 enough /balance /open/x >load.log 2>&1 &
            load=$!

            step "a hundred reloads"
            process=$(show MainPID)
            for number in $(seq 50); do
                for configuration in two one; do
                    cp $configuration /etc/countersign/countersign.yaml
                    systemctl reload countersign.service
                done
            done
            [ "$(show MainPID)" = "$process" ]
            eventually logged '^reloaded' 100

            step "twenty restarts"
            for number in $(seq 20); do systemctl restart countersign.service; done
            [ "$(show MainPID)" != "$process" ]
            eventually logged '^ready' 21
            touch enough
            wait "$load" || { cat load.log; exit 1; }
            cat load.log

            step "on one login"
            [ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]
            step end
            """#)
    }
}
