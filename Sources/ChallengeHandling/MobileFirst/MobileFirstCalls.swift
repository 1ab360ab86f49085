// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// End of a step of a MobileFirst login.
enum MobileFirstInterruption: Error {
    case failed(LoginFailure)
    /// The server does not know the client (any more).
    case unknownClient
}

/// The requests of one conversation, with resends on conflicts and failures in words.
struct MobileFirstCalls {
    /// The name for failures and steps.
    let name: String
    let conversation: Conversation

    /// The number of resends after conflicts, as in IBM's clients.
    private static var resends: Int { 7 }

    /// Sends `request` for the named step. Throws without a usable answer: no answer at all, too many conflicts, an
    /// inconclusive status, or an unknown client. The step itself evaluates any other status.
    func send(_ request: SideRequest, _ step: String) async throws(MobileFirstInterruption) -> SideResponse {
        for _ in 0...Self.resends {
            let response: SideResponse
            do {
                response = try await conversation.sideRequests.send(request)
            } catch {
                report("\(step): no answer, \(error.reason)")
                throw .failed(LoginFailure(error, step: step, challenge: name))
            }
            guard !MobileFirstDetector.isConflict(status: response.status, fields: response.fields) else {
                report("\(step): 409, conflict")
                continue
            }
            let retryAt = retryAt(response)
            if InconclusiveStatus.contains(response.status) {
                report("\(step): \(response.status)")
                throw .failed(
                    failure(
                        "The server answered \(step) with status \(response.status), which says nothing about the "
                            + "credential. A later request tries again; if the error persists, check the server.",
                        retryAt: retryAt))
            }
            if response.status == 400, JSONValue(parsing: response.body)?["errorCode"] == "INVALID_CLIENT_ID" {
                report("\(step): 400, the server does not know this client")
                throw .unknownClient
            }
            return response
        }
        throw .failed(failure("The server answered \(step) with a conflict \(Self.resends + 1) times in a row."))
    }

    /// Returns a failure that says nothing about any credential.
    func failure(_ detail: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(.failed, challenge: name, detail: detail, retryAt: retryAt)
    }

    /// Returns the failure for a status that a step cannot use.
    func unexpected(_ response: SideResponse, _ step: String, _ more: String = "") -> MobileFirstInterruption {
        let code = JSONValue(parsing: response.body)?["errorCode"]?.stringValue.map(ServerText.name)
        report("\(step): \(response.status)\(code.map { " \($0)" } ?? ""), unexpected")
        return .failed(
            failure(
                "The server answered \(step) with status \(response.status)\(code.map { " (\($0))" } ?? ""), which the "
                    + "login cannot use.\(more.isEmpty ? "" : " \(more)")",
                retryAt: retryAt(response)))
    }

    func retryAt(_ response: SideResponse) -> Int64? {
        Moment.retry(after: response.fields, now: conversation.now())
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }
}

extension SideRequest {
    /// Returns a POST or PUT of JSON.
    static func json(_ method: HTTPRequest.Method, _ url: WebURL, _ body: SecretJSON) -> SideRequest {
        SideRequest(
            method: method, url: url,
            fields: [.contentType: "application/json", .accept: "application/json"], body: body.text)
    }

    /// Returns a POST of a form.
    static func form(_ url: WebURL, _ fields: [(name: String, value: Secret)]) -> SideRequest {
        SideRequest(
            method: .post, url: url,
            fields: [.contentType: FormEncoding.mediaType, .accept: "application/json"],
            body: FormEncoding.body(fields))
    }
}

/// Strict reader of a token endpoint's answer (RFC 6749 §5.1).
struct BearerToken {
    /// The session that injects the token.
    let session: Session
    /// The lifetime that the server states, in seconds.
    let seconds: Int64?

    /// Parses `body`, the answer to a request sent at `sentAt` (milliseconds since 1970). The lifetime counts from
    /// then, so the session never outlives the token. `nil` without a bearer token that a field can carry.
    init?(_ body: [UInt8], sentAt: Int64) {
        guard let value = JSONValue(parsing: body), let token = value["access_token"]?.stringValue,
            Self.isBase64Token(token), (value["token_type"]?.stringValue ?? "Bearer").lowercased() == "bearer"
        else { return nil }
        // More than ten years is a mistake in units. The limit avoids overflow.
        seconds = value["expires_in"]?.integerValue.map { min(max($0, 0), 10 * 366 * 86400) }
        let end = seconds.map { sentAt.addingReportingOverflow($0 * 1000) }
        session = Session(
            fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))],
            expiresAt: end.flatMap { $0.overflow ? nil : $0.partialValue })
    }

    /// Returns whether `text` is made of the characters of a b64token (RFC 6750 §2.1).
    private static func isBase64Token(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { $0.isAlphanumeric || "-._~+/=".utf8.contains($0) }
    }
}

/// The three parts of a JWS (RFC 7515) for MobileFirst, signed with RS256.
struct JSONWebSignature {
    let header: String
    let payload: String
    let signature: String

    /// Signs `payload`. The header holds the public key itself, and the client's identifier once there is one.
    init(signing payload: JSONValue, with key: any SigningKey, clientID: String?) throws(StateError) {
        var publicKey: [String: JSONValue] = [
            "kty": "RSA", "n": .string(Base64.encode(key.modulus, .url)),
            "e": .string(Base64.encode(key.exponent, .url)),
        ]
        if let clientID { publicKey["kid"] = .string(clientID) }
        let header = JSONValue.object(["alg": "RS256", "jwk": .object(publicKey)])
        self.header = Base64.encode(header.serialized(), .url)
        self.payload = Base64.encode(payload.serialized(), .url)
        signature = Base64.encode(try key.signature(for: Array("\(self.header).\(self.payload)".utf8)), .url)
    }

    /// The parts joined by dots.
    var compact: String { "\(header).\(payload).\(signature)" }

    /// The parts as an object, as registrations carry them.
    var parts: JSONValue {
        ["header": .string(header), "payload": .string(payload), "signature": .string(signature)]
    }
}
