// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Learning
internal import Secrets

/// The login of `countersign serve --to`, run once before callers are served.
///
/// A mistyped password is asked for again, and the session shows if requests need a field against forgery.
struct FirstLogin {
    /// The number of values that may be typed. Most servers lock an account after a few more.
    private static let typedAtMost = 3

    /// A login that was not refused.
    struct Outcome {
        /// The configuration.
        var block: ConfigurationBlock
        /// The credential that was used.
        let credential: Credential
        /// The fields that a person has typed.
        let typed: [String]
    }

    let look: SiteLook
    let found: SiteLook.Result

    /// Logs in with the stored values, or with typed ones. Throws if the server refuses them.
    func run() throws -> Outcome {
        let typed = found.block.fields.filter { found.stored[$0] == nil }
        var refusals = 0
        while true {
            let credential = try look.credentials.complete(found.stored, fields: found.block.fields)
            var block = found.block
            guard let refusal = try refusal(of: credential, &block) else {
                return Outcome(block: block, credential: credential, typed: typed)
            }
            refusals += 1
            guard !typed.isEmpty, refusal.code == .rejected, refusals < Self.typedAtMost else {
                throw Failure(
                    "\(refusal.code.rawValue): \(refusal.statement) The values of \(credential.name) were sent "
                        + "\(refusals == 1 ? "once" : "\(refusals) times, each typed anew"); nothing is served",
                    code: EX_UNAVAILABLE)
            }
            Terminal.printError(
                "\(refusal.statement) Type the values again, or press Ctrl-C: each time is an attempt of the account."
            )
        }
    }

    /// Logs in once, and adds to the configuration what the session shows. Returns the server's refusal, if any.
    private func refusal(of credential: Credential, _ block: inout ConfigurationBlock) throws -> LoginFailure? {
        // A one-time password is for the daemon's own login.
        guard credential["totp-seed"] == nil else { return nil }
        let trial = try LoginTrial(block.lines())
        let outcome = try trial.run(credential, then: look.address) { _ in }
        switch outcome.result {
        case .failure(let failure):
            if [.accountLocked, .attemptsKept, .rejected].contains(failure.code) { return failure }
            Terminal.printError("the login is not known to work: \(failure.code.rawValue): \(failure.detail)")
        case .success(let session):
            if !session.isVerified, let visit = outcome.visit, trial.isStarted(by: visit.first) {
                return LoginFailure(
                    .rejected, challenge: block.name,
                    detail: "The server asks for a login again at \(look.address.path).")
            }
            let hasFields = block.challenge.contains { $0.text.hasPrefix("inject:") }
            if !hasFields, let names = session.cookies?.snapshot.names, let line = ForgeryToken.line(for: names) {
                block.challenge.append(line)
            }
        }
        return nil
    }
}

extension LoginFailure {
    /// The server's refusal, without the advice for a running daemon.
    fileprivate var statement: String {
        let end = detail.firstRange(of: " It is not sent again.")?.lowerBound ?? detail.endIndex
        let text = detail[..<end]
        return text.hasSuffix(".") ? String(text) : "\(text)."
    }
}
