// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Why a step of a MobileFirst login ended.
enum MobileFirstInterruption: Error {
    /// The login ends.
    case failed(LoginFailure)
    /// The server does not know the client (any more).
    case unknownClient
}

/// The calls of one conversation: sent, sent again on a conflict, and their failures put into words.
struct MobileFirstCalls {
    /// Whom failures and steps belong to.
    let name: String
    let conversation: Conversation

    /// IBM's clients send a request again at most so often when the server answers with a conflict.
    private static var resends: Int { 7 }

    /// Sends `request`, for the step of that name. Throws where no usable answer came: none at all, too many conflicts,
    /// 429, 5xx, an unknown client. Every other status is the step's own to judge.
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
            if response.status == 429 || response.status >= 500 {
                report("\(step): \(response.status)")
                throw .failed(
                    failure(
                        "The server answered \(step) with status \(response.status), which says nothing about the "
                            + "credential. A later request tries again; if it stays so, look at the server.",
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

    /// A failure that says nothing about any credential.
    func failure(_ detail: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(.failed, challenge: name, detail: detail, retryAt: retryAt)
    }

    /// The failure for a status that a step cannot use.
    func unexpected(_ response: SideResponse, _ step: String, _ more: String = "") -> MobileFirstInterruption {
        let code = JSONValue(parsing: response.body)?["errorCode"]?.stringValue.map(ServerText.name)
        report("\(step): \(response.status)\(code.map { " \($0)" } ?? ""), unexpected")
        return .failed(
            failure(
                "The server answered \(step) with status \(response.status)\(code.map { " (\($0))" } ?? ""), which a "
                    + "login cannot go on with.\(more.isEmpty ? "" : " \(more)")",
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
    /// A POST or PUT of JSON.
    static func json(_ method: HTTPRequest.Method, _ url: WebURL, _ body: SecretJSON) -> SideRequest {
        SideRequest(
            method: method, url: url,
            fields: [.contentType: "application/json", .accept: "application/json"], body: body.text)
    }

    /// A POST of a form.
    static func form(_ url: WebURL, _ fields: [(name: String, value: Secret)]) -> SideRequest {
        SideRequest(
            method: .post, url: url,
            fields: [.contentType: FormEncoding.mediaType, .accept: "application/json"],
            body: FormEncoding.body(fields))
    }
}
