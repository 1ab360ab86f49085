// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The words of a failure for a program, in place of those for the daemon's operator.
///
/// Exchanges and logins are the daemon's, and their messages name keys of its configuration and its commands.
enum ProgramWords {
    /// The operator's words and the program's, in the order of replacement.
    private static let pairs: [(operators: String, programs: String)] = [
        (
            "`countersign doctor` shows its certificates; `tls.certificate` and `tls.minimum` set Countersign's side",
            "`ConnectionOptions.certificate` sets this side's"
        ),
        ("; `countersign doctor` shows its dates", ""), (" (`countersign doctor` does)", ""),
        (" (`countersign doctor` shows them)", ""), ("; `countersign doctor` says how", ""),
        ("set the new pin (`countersign doctor` shows it)", "set the new one in `ConnectionOptions.pin`"),
        ("`countersign doctor` shows more", "`openssl s_client` shows more"),
        ("; the daemon's log has the cause", ""),
        ("the daemon's log has the reason", "the TLS library gives no reason"),
        (", or see the daemon's log", ""),
        ("`tls.certificate` and `tls.key`", "`ConnectionOptions.certificate` and `key`"),
        ("`tls.certificate`", "`ConnectionOptions.certificate`"), ("`tls.ca`", "`ConnectionOptions.authorities`"),
        ("`tls.pin`", "`ConnectionOptions.pin`"), ("allowed here (`tls.minimum`)", "allowed here (1.2 or later)"),
        ("in `url`", "in the address"), ("set `http: 1.1`", "set `ConnectionOptions.version` to `.http1`"),
        ("`plaintext: allow`", "`ConnectionOptions.allowsPlaintext`"),
        ("Check `proxy` of the upstream", "Check `ConnectionOptions.proxy`"),
        (
            "raise `replay` of the upstream, and `limits.replay` if many are under way at once",
            "raise `ClientConfiguration.Limits.replay`"
        ),
        ("aise `replay` of the upstream", "aise `ClientConfiguration.Limits.replay`"),
        ("`limits.waiters`", "`ClientConfiguration.Limits.waiters`"),
        ("`timeouts.connect`", "`ClientConfiguration.Timeouts.connect`"),
        ("`timeouts.response`", "`ClientConfiguration.Timeouts.response`"),
        ("`timeouts.idle`", "`ClientConfiguration.Timeouts.idle`"),
        ("`timeouts.login`", "`ClientConfiguration.Timeouts.login`"),
        ("`login.timeout` sets the limit", "The `timeout` of the form sets the limit"),
        (
            "is not in the configuration, so nothing was sent. Add it there.",
            "is at an origin that the client may not send to, so nothing was sent. Add the origin to `ClientConfiguration.loginOrigins`."
        ),
        ("or open the latch (`unlatch`)", "or call `ChallengeClient.unlatch()`"),
    ]

    /// Returns a failure's detail, which says so if the account is locked.
    static func detail(of failure: LoginFailure) -> String {
        let detail = text(failure.detail)
        guard failure.code == .accountLocked, !detail.lowercased().contains("lock") else { return detail }
        return "The account is locked. \(detail)"
    }

    /// Returns the text in the words for a program.
    static func text(_ text: String) -> String {
        var text = pairs.reduce(text) { $0.replacing($1.operators, with: $1.programs) }
        text = text.replacing(
            /and no challenge is configured for it\. Add one with `security-check: [^`]*`\./,
            with: "and no handler of it is registered. Register one by `registerChallengeHandler`.")
        text = text.replacing(/run `countersign unlatch [^`]*`/, with: "call `ChallengeClient.unlatch()`")
        text = text.replacing(
            /Run `countersign login [^`]*`, which tries at once and shows the answer/,
            with: "Call `ChallengeClient.unlatch()`, after which the next request tries at once")
        guard text.hasPrefix("Upstream http") else { return text }
        return "The server " + text.dropFirst("Upstream ".count)
    }
}
