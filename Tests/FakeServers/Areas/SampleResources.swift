// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The resources of the areas: answers that describe how a request arrived, and bodies of any size and pace.
enum SampleResources {
    /// The adapter `bank`: balance, transfer and others with the PIN code, `whoami` for any registered client.
    static var bank: [AdapterResource] {
        [
            AdapterResource("bank/balance", scope: "accessRestricted", methods: ["GET", "HEAD"]) { _ in
                .json(200, ["account": "12-345-678", "balance": "$1,438.20", "currency": "USD"])
            },
            AdapterResource("bank/transfer", scope: "accessRestricted", methods: ["POST"], handle: receipt),
            AdapterResource("bank/stream", scope: "accessRestricted", methods: ["GET"], handle: stream),
            AdapterResource("bank/bytes", scope: "accessRestricted", methods: ["GET"], handle: bytes),
            AdapterResource("bank/echo", scope: "accessRestricted", handle: echo),
            AdapterResource("bank/whoami", handle: echo),
        ]
    }

    /// Returns the request as it arrived: method, path, query, fields, and the size and digest of the body. No secret
    /// comes back.
    static func echo(_ request: FakeRequest) -> FakeResponse {
        let secret = ["authorization", "cookie"]
        let fields = request.fields.map { field in
            JSONMember(field.name, secret.contains(field.name.lowercased()) ? "<present>" : .string(field.value))
        }
        return .json(
            200,
            [
                "method": .string(request.method), "path": .string(request.path),
                "query": request.query.map(JSON.string) ?? .null,
                "fields": .array(fields.map { .object([$0]) }), "size": .integer(Int64(request.body.count)),
                "sha256": .string(sha256(request.body)),
            ])
    }

    /// Returns a receipt for the body.
    static func receipt(_ request: FakeRequest) -> FakeResponse {
        .json(
            201,
            [
                "receipt": .string(String(randomName().prefix(12))), "size": .integer(Int64(request.body.count)),
                "sha256": .string(sha256(request.body)), "request": JSON(parsing: request.body) ?? .null,
            ])
    }

    /// Server-sent events: `lines` of them, `pause` milliseconds apart.
    static func stream(_ request: FakeRequest) -> FakeResponse {
        let lines = request.number("lines", default: 5, atMost: 10_000)
        let pause = request.number("pause", default: 200, atMost: 60_000)
        var response = FakeResponse(
            200, fields: [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")])
        response.body = .chunks(
            (0..<lines).map { line in
                FakeResponse.Piece("data: tick \(line + 1)\n\n", after: .milliseconds(line == 0 ? 0 : pause))
            })
        return response
    }

    /// `count` bytes.
    static func bytes(_ request: FakeRequest) -> FakeResponse {
        var response = FakeResponse(200, fields: [("Content-Type", "application/octet-stream")])
        response.body = .generated(count: request.number("count", default: 65, atMost: 1 << 32))
        return response
    }

    /// Answers without a login: `status/404`, `bytes`, `stream`, `cookie`, and an echo of everything else.
    static func open(_ request: FakeRequest, below prefix: String) -> FakeResponse {
        let path = request.path.dropFirst(prefix.count)
        switch path {
        case "bytes": return bytes(request)
        case "stream": return stream(request)
        case "cookie":
            var response = echo(request)
            response.fields.append(("Set-Cookie", "flavour=\(randomName().prefix(6)); Path=/"))
            return response
        case _ where path.hasPrefix("status/"):
            let status = Int(path.dropFirst(7)) ?? 400
            return (200...599).contains(status) ? .text(status, "status \(status)\n") : FakeResponse(400)
        default: return echo(request)
        }
    }
}

extension FakeRequest {
    fileprivate func number(_ name: String, default value: Int, atMost limit: Int) -> Int {
        min(max(queryFields[name].flatMap { Int($0) } ?? value, 0), limit)
    }
}

/// An area with HTTP Basic (RFC 7617): realm Demo, user ann, password demo.
struct BasicArea: Sendable {
    var recorder: Recorder
    var user = "ann"
    var password = "demo"

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        guard request.field("Authorization") != nil else {
            recorder.note { $0.challenges["basic", default: 0] += 1 }
            return unauthorized
        }
        let given = request.basicCredentials
        let isRight = given?.user == user && given?.password == password
        recorder.note { record in
            record.answers["basic", default: []].append(["user": .string(given?.user ?? "")])
            if isRight {
                record.logins["basic", default: 0] += 1
            } else {
                record.wrongAnswers["basic", default: 0] += 1
            }
        }
        return isRight ? inside(request) : unauthorized
    }

    private var unauthorized: FakeResponse {
        .text(
            401, "Please say who you are.\n", fields: [("WWW-Authenticate", "Basic realm=\"Demo\", charset=\"UTF-8\"")])
    }
}
