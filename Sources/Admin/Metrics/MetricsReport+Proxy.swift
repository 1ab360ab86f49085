// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Proxy

// What the workers have counted. The sets of labels are bounded: names of the configuration, statuses of three digits, codes
// of ours; never a path, a scope or an address.
extension MetricsReport {
    func writeExchanges(to text: inout MetricsText) {
        let upstreams = proxy.upstreams
        text.family(
            "exchanges", .counter,
            "Exchanges that ended, by upstream, by the status that the caller got (0: none of 100 to 599), and by the code of the local reply where it was one of ours."
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
        text.family("exchanges_begun", .counter, "Exchanges that began to be forwarded.")
        text.sample(proxy.begunExchanges)
        text.family("exchanges_running", .gauge, "Exchanges under way, tunnels included.")
        text.sample(proxy.exchanges)
        text.family("exchanges_limit", .gauge, "How many exchanges may be under way (limits.exchanges).")
        text.sample(proxy.exchangeLimit)
        text.family(
            "exchanges_cut_off", .counter,
            "Exchanges that ended without a whole response: by the caller, who went away or was too slow, or by the upstream, whose response broke off."
        )
        for upstream in upstreams {
            text.sample([("upstream", upstream.name), ("by", "caller")], upstream.lostCallers)
            text.sample([("upstream", upstream.name), ("by", "upstream")], upstream.brokenResponses)
        }
        text.family(
            "exchange_duration_seconds", .histogram, unit: "seconds",
            "How long exchanges took, from their head to the end of the response.")
        for upstream in upstreams { text.histogram([("upstream", upstream.name)], upstream.whole) }
        text.family(
            "exchange_own_seconds", .histogram, unit: "seconds",
            "The share of countersign in that: until the request was handed to its transfer, and from the last of the response until that was written. Without the upstream, logins and slow callers."
        )
        for upstream in upstreams { text.histogram([("upstream", upstream.name)], upstream.own) }
        text.family(
            "challenges", .counter,
            "Challenges that exchanges met, by upstream, challenge and outcome: answered, failed, passed to the caller, or body-not-replayable."
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
        text.family("connections", .gauge, "Callers connected now.")
        text.sample(proxy.connections)
        text.family(
            "connections_limit", .gauge,
            "How many callers may be connected (limits.callers), besides those of the admin listener.")
        text.sample(proxy.connectionLimit)
        text.family("connections_accepted", .counter, "Callers ever connected.")
        text.sample(proxy.acceptedConnections)
        text.family(
            "connections_refused", .counter,
            "Callers turned away before their request was read: limits.callers, callers of the listener, or file descriptors."
        )
        for reason in NoRoom.allCases {
            text.sample([("reason", reason.rawValue)], proxy.refused[reason] ?? 0)
        }
        text.family("tunnels", .gauge, "Connections that another protocol is spoken on now.")
        text.sample(proxy.tunnels)
    }

    func writeWorkers(to text: inout MetricsText) {
        text.family(
            "worker_up", .gauge,
            "Whether the worker's loop has answered this scrape in time; where not, its other figures are those of an earlier one."
        )
        for worker in proxy.late { text.sample([("worker", "\(worker)")], 0) }
        for worker in proxy.workers where !proxy.late.contains(worker.number) {
            text.sample([("worker", "\(worker.number)")], 1)
        }
        text.family(
            "worker_lag_seconds", .gauge, unit: "seconds",
            "How long the worker's loop took to get round to the question of this scrape.")
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.lag))
        }
        text.family(
            "worker_longest_turn_seconds", .gauge, unit: "seconds",
            "The longest turn of the worker's loop in the last half a minute or more; so late others may have been served."
        )
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.longestTurn))
        }
        text.family(
            "worker_busy_seconds", .counter, unit: "seconds",
            "How long the worker's loop has worked; its rate is the share of the time in which it did not wait.")
        for worker in proxy.workers {
            text.sample([("worker", "\(worker.number)")], MetricsText.seconds(nanoseconds: worker.busy))
        }
    }
}
