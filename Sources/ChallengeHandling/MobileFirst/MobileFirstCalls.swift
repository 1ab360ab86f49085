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
        let response: SideResponse
        do throws(LoginFailure) {
            response = try await sendThroughConflicts(request, step)
        } catch {
            throw .failed(error)
        }
        if InconclusiveStatus.contains(response.status) {
            report("\(step): \(response.status)")
            throw .failed(
                failure(
                    "The server answered \(step) with status \(response.status), which says nothing about the "
                        + "credential. A later request tries again; if the error persists, check the server.",
                    retryAt: retryAt(response)))
        }
        if response.status == 400, JSONValue(parsing: response.body)?["errorCode"] == "INVALID_CLIENT_ID" {
            report("\(step): 400, the server does not know this client")
            throw .unknownClient
        }
        return response
    }

    /// Sends `request` until the server answers without a conflict. Throws without an answer.
    func sendThroughConflicts(_ request: SideRequest, _ step: String) async throws(LoginFailure) -> SideResponse {
        for _ in 0...Self.resends {
            let response: SideResponse
            do throws(SideRequestError) {
                response = try await conversation.sideRequests.send(request)
            } catch {
                report("\(step): no answer, \(error.reason)")
                throw LoginFailure(error, step: step, challenge: name)
            }
            guard MobileFirstDetector.isConflict(status: response.status, fields: response.fields) else {
                return response
            }
            report("\(step): 409, conflict")
        }
        throw failure("The server answered \(step) with a conflict \(Self.resends + 1) times in a row.")
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
