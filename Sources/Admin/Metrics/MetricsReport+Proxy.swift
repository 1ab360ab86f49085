// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Proxy

// The counters of the workers. The sets of labels are bounded: configured names, three-digit statuses, codes of local replies;
// never a path, a scope or an address.
extension MetricsReport {
    func writeExchanges(to text: inout MetricsText) {
        let upstreams = proxy.upstreams
        text.family(
            "exchanges", .counter,
            "Exchanges that ended, by upstream, by status sent to the caller (0: outside 100 to 599), and by the code of the local reply, if it was one."
        )
        for upstream in upstreams {
            for (status, count) in upstream.responses {
                text.sample([("upstream", upstream.name), ("status", "\(status)"), ("local_reply", "")], count)
            }
        }
        let replies = proxy.replies.sorted {
            ($0.key.upstream, $0.key.code.rawValue, $0.key.status)
                < ($1.key.upstream, $1.key.code.rawValue, $1.key.status)
        }
        for (reply, count) in replies {
            text.sample(
                [("upstream", reply.upstream), ("status", "\(reply.status)"), ("local_reply", reply.code.rawValue)],
                count)
        }
        text.family("exchanges_begun", .counter, "Exchanges begun.")
        text.sample(proxy.begunExchanges)
        text.family("exchanges_running", .gauge, "Exchanges under way, including tunnels.")
        text.sample(proxy.exchanges)
        text.family("exchanges_limit", .gauge, "Limit of exchanges under way (limits.exchanges).")
        text.sample(proxy.exchangeLimit)
        text.family(
            "exchanges_cut_off", .counter,
            "Exchanges that ended without a complete response, by cause: the caller left or was too slow, or the upstream broke off."
        )
        for upstream in upstreams {
            text.sample([("upstream", upstream.name), ("by", "caller")], upstream.lostCallers)
            text.sample([("upstream", upstream.name), ("by", "upstream")], upstream.brokenResponses)
        }
        text.family(
            "exchange_duration_seconds", .histogram, unit: "seconds",
            "Duration of exchanges, from the request head to the end of the response.")
        for upstream in upstreams { text.histogram([("upstream", upstream.name)], upstream.whole) }
        text.family(
            "exchange_own_seconds", .histogram, unit: "seconds",
            "The part of countersign in the duration: until the request is handed to its transfer, and from the end of the response until it is written. Excludes the upstream, logins and slow callers."
        )
        for upstream in upstreams { text.histogram([("upstream", upstream.name)], upstream.own) }
        text.family(
            "challenges", .counter,
            "Challenges to exchanges, by upstream, challenge and outcome: answered, failed, passed to the caller, or body-not-replayable."
        )
        for upstream in upstreams {
            let counts = upstream.challenges.sorted {
                ($0.key.challenge, $0.key.outcome.rawValue) < ($1.key.challenge, $1.key.outcome.rawValue)
            }
            for (challenge, count) in counts {
                text.sample(
                    [
                        ("upstream", upstream.name), ("challenge", challenge.challenge),
                        ("outcome", challenge.outcome.rawValue),
                    ], count)
            }
        }
    }

    func writeConnections(to text: inout MetricsText) {
        text.family("connections", .gauge, "Connected callers.")
        text.sample(proxy.connections)
        text.family(
            "connections_limit", .gauge,
            "Limit of connected callers (limits.callers), except those of the admin listener.")
        text.sample(proxy.connectionLimit)
        text.family("connections_accepted", .counter, "Accepted connections of callers.")
        text.sample(proxy.acceptedConnections)
        text.family(
            "connections_refused", .counter,
            "Callers turned away before their request was read, by reason: limits.callers, `callers` of the listener, the share of one user, or file descriptors."
        )
        for reason in ConnectionRefusal.allCases {
            text.sample([("reason", reason.rawValue)], proxy.refused[reason] ?? 0)
        }
        text.family("tunnels", .gauge, "Open tunnels, that is, connections switched to another protocol.")
        text.sample(proxy.tunnels)
    }

    func writeWorkers(to text: inout MetricsText) {
        text.family(
            "worker_up", .gauge,
            "1 if the worker answered this scrape in time; if 0, its other metrics are from an earlier scrape."
        )
        for worker in proxy.late { text.sample([("worker", "\(worker)")], 0) }
        for worker in proxy.workers where !proxy.late.contains(worker.number) {
            text.sample([("worker", "\(worker.number)")], 1)
        }
        text.family(
            "worker_lag_seconds", .gauge, unit: "seconds",
            "Time that the worker's event loop took to reach the question of this scrape.")
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.lag))
        }
        text.family(
            "worker_longest_turn_seconds", .gauge, unit: "seconds",
            "Longest turn of the worker's event loop in the last 30 to 60 seconds, during which other connections had to wait."
        )
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.longestTurn))
        }
        text.family(
            "worker_busy_seconds", .counter, unit: "seconds",
            "Time that the worker's event loop was busy; the rate is its utilization.")
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.busy))
        }
    }
}
