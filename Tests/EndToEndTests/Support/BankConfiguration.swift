// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The configuration that a scenario runs with: the fakes' bank, and whatever the scenario needs otherwise.
struct BankConfiguration: Sendable {
    /// The listeners, each with all its lines; `nil`: the usual one, with the routes for what needs no login.
    var listeners: String?
    /// A TCP port for the admin listener, besides its socket.
    var adminPort: UInt16?
    /// Further lines of `upstreams.bank`.
    var bank: [String] = []
    /// The lines of `upstreams.bank.mobilefirst` after its address; none: the bank is no MobileFirst server.
    var mobileFirst = ["application: com.sample.pincode", "platform: android", #"version: "1.0""#]
    /// Further upstreams, each with all its lines.
    var upstreams: [String] = []
    /// The items of `credentials.sources`.
    var sources = ["env"]
    /// `credentials.ask`, if anybody is asked.
    var asked: String?
    /// The items of `challenges`.
    var challenges = [Self.pinChallenge]
    /// The event loops.
    var workers = 1
    /// Further lines at the top level.
    var more: [String] = []
    /// The daemon's environment besides the usual.
    var environment = ["COUNTERSIGN_BANK_PIN__PIN": "1234"]

    /// The challenge that most scenarios are about.
    static let pinChallenge = """
        name: bank-pin
        upstream: bank
        security-check: PinCodeAttempts
        credential: bank-pin
        answer: { pin: "{pin}" }
        """

    /// The whole file, in place of all else but the environment.
    var whole: String?

    /// The text of the file.
    func text(port: UInt16, upstreamPort: UInt16, folder: Folder) -> String {
        if let whole { return whole }
        let server = "http://127.0.0.1:\(upstreamPort)"
        let usual = """
            address: 127.0.0.1:\(port)
            upstream: bank
            routes:
              - { path: /open/, upstream: server }
              - { path: /basic/, upstream: server }
            """
        let bankLines =
            ["url: \(server)/mfp/api/adapters/bank/"] + bank
            + (mobileFirst.isEmpty
                ? [] : ["mobilefirst:"] + (["api: \(server)/mfp/api"] + mobileFirst).map { "  " + $0 })
        var lines = ["listeners:"] + item(listeners ?? usual)
        let admin = ["unix:\(folder.path(of: "admin.sock"))"] + (adminPort.map { ["127.0.0.1:\($0)"] } ?? [])
        lines += ["admin:", "  address: [\(admin.map { "\"\($0)\"" }.joined(separator: ", "))]"]
        lines += ["upstreams:", "  bank:"] + bankLines.map { "    " + $0 }
        lines += ["  server:", "    url: \(server)/"]
        for upstream in upstreams { lines += upstream.split(separator: "\n").map { "  " + $0 } }
        lines += ["credentials:", "  sources:"] + sources.flatMap { item($0).map { "  " + $0 } }
        if let asked { lines.append("  ask: \(asked)") }
        lines += challenges.isEmpty ? [] : ["challenges:"] + challenges.flatMap { item($0) }
        lines += ["workers: \(workers)", "log: { level: debug, format: json }"] + more
        return lines.joined(separator: "\n") + "\n"
    }

    /// Lines as an item of a list.
    private func item(_ text: String) -> [String] {
        text.split(separator: "\n").enumerated().map { ($0 == 0 ? "  - " : "    ") + $1 }
    }
}
