// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// A resource of the adapter `bank`.
enum BankResource: String {
    case balance
    case stream
    case transfer
    case whoami

    /// The resource of that path below the API.
    init?(_ path: Substring) {
        let start = "adapters/bank/"
        guard path.hasPrefix(start) else { return nil }
        self.init(rawValue: String(path.dropFirst(start.count)))
    }

    /// The element of the scope that it demands; `whoami` takes any registered client.
    var scope: String { self == .whoami ? "RegisteredClient" : "accessRestricted" }

    /// Answers a request that has passed all security.
    func answer(_ request: DemoRequest) -> DemoResponse {
        guard self == .whoami || (request.method == "POST") == (self == .transfer) else {
            return DemoResponse(405, fields: [("Allow", self == .transfer ? "POST" : "GET")])
        }
        switch self {
        case .balance: return .json(200, ["account": "12-345-678", "balance": "$1,438.20", "currency": "USD"])
        case .stream: return Samples.stream(request)
        case .transfer:
            return .json(
                201, ["receipt": .string(String(Samples.randomName().prefix(12))), "request": request.json ?? .null])
        case .whoami: return Samples.echo(request)
        }
    }
}
