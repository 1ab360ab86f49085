// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something that goes wrong, a bounded number of times or always, at one endpoint or everywhere.
package struct Fault: Sendable {
    /// Where; `nil` is everywhere.
    package var endpoint: Endpoint?
    /// How many requests pass unharmed first.
    package var skip: Int
    /// How many requests it then strikes; `nil` is all.
    package var times: Int?
    /// What it does.
    package var effect: Effect

    /// What a fault does to an answer.
    package enum Effect: Sendable {
        /// The server does its work, and the answer is changed or lost on its way.
        case altered(@Sendable (inout FakeResponse) -> Void)
        /// The request never reaches the server's work: this is the answer, made from the count of strikes so far.
        case instead(@Sendable (Int) -> FakeResponse)
    }

    /// A fault at that endpoint that strikes so many times after so many requests unharmed.
    package init(_ effect: Effect, at endpoint: Endpoint?, times: Int? = nil, skip: Int = 0) {
        self.endpoint = endpoint
        self.skip = skip
        self.times = times
        self.effect = effect
    }
}

extension Fault.Effect {
    /// That answer and no other.
    package static func answer(_ response: FakeResponse) -> Self { .instead { _ in response } }

    /// 409 with `MFP-Conflict`: the client is to send the request again unchanged.
    package static var conflict: Self { .answer(FakeResponse(409, fields: [("MFP-Conflict", "true")])) }

    /// 409 as any resource may answer it.
    package static var conflictWithoutHeader: Self { .answer(.json(409, ["error": "edited by another"])) }

    /// 400 `INVALID_CLIENT_ID` whoever asks.
    package static var unknownClient: Self { .answer(unknownClientResponse) }

    /// 403 `insufficient_scope` that names another scope each time.
    package static var changingScope: Self {
        .instead { insufficientScope("RegisteredClient changing\($0)") }
    }

    /// 401 `invalid_token` whatever the token.
    package static var invalidToken: Self { .answer(invalidTokenResponse) }

    /// A server in trouble: that status, with the seconds to wait where it says them.
    package static func unavailable(_ status: Int = 503, retryAfter: Int? = nil) -> Self {
        .answer(.html(status, "<html><body>Maintenance</body></html>", fields: retryAfterField(retryAfter)))
    }

    /// A redirect to somewhere else.
    package static func redirect(to location: String) -> Self {
        .answer(FakeResponse(302, fields: [("Location", location)]))
    }

    /// The right status and type, and a body that is no JSON.
    package static var garbage: Self {
        .altered { $0.body = .bytes(Array("{\"garbage\":".utf8)) }
    }

    /// The right answer under another content type.
    package static func contentType(_ type: String) -> Self {
        .altered { response in
            response.fields.removeAll { $0.name.lowercased() == "content-type" }
            response.fields.append(("Content-Type", type))
        }
    }

    /// The answer comes so much later.
    package static func delay(_ duration: Duration) -> Self { .altered { $0.delivery.delay += duration } }

    /// The answer never comes; the connection stays open.
    package static var hang: Self { .altered { $0.delivery.hangs = true } }

    /// The connection ends after that many bytes of the answer, head included; 0 is before its first.
    package static func cut(after bytes: Int, reset: Bool = false) -> Self {
        .altered {
            $0.delivery.cutsAfter = bytes
            $0.delivery.resets = reset
        }
    }

    /// The connection closes after the answer.
    package static var close: Self { .altered { $0.delivery.closes = true } }

    private static func retryAfterField(_ seconds: Int?) -> [(name: String, value: String)] {
        seconds.map { [("Retry-After", "\($0)")] } ?? []
    }
}
