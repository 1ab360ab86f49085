// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers the login page of a gateway: a server in front of others that wants a form to be filled in before it lets a request
/// pass, and that announces itself by no status of HTTP.
///
/// The names are those of MobileFirst 8.0. What differs: the methods *return* what is to be done, so that none can be forgotten;
/// a form is submitted apart from the requests of the program, with cookies of its own; and whether a login has worked is told
/// by `canHandleResponse`, never by status 200 alone.
public protocol GatewayChallengeHandler: Sendable {
    /// A name for the gateway, of the program's choice. Failures tell it.
    var gatewayName: String { get }
    /// The media types of the responses whose body is needed by `canHandleResponse`, in lower case; by default those of pages.
    /// Responses of other types are shown to it by their heads.
    var bodyTypes: [String] { get }

    /// Whether `response` comes from the gateway and asks for a login. Called for every response, of any status, perhaps more
    /// than once and on the client's own thread: it must look and do nothing else, and not block. The body, where it is there, is
    /// no more than its first 64 KiB.
    func canHandleResponse(_ response: ExaminedResponse) -> Bool
    /// Answers the gateway. Called again in the same conversation where the answer was met with the login page once more.
    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer
    /// A submitted form was answered with 200, and not by the login page. By default: `submitSuccess`.
    func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer
    /// A submitted form was answered with another status, and not by the login page. By default: `cancel` for 400 and above,
    /// `submitSuccess` for the rest.
    func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer
}

extension GatewayChallengeHandler {
    /// Pages.
    public var bodyTypes: [String] { ["text/html", "application/xhtml+xml"] }

    /// The login has worked, unless the gateway asks again.
    public func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer { .submitSuccess }

    /// A redirect to another server and 204 are as good as 200.
    public func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        response.status < 400
            ? .submitSuccess : .cancel(reason: "The login was answered with status \(response.status).")
    }
}

/// A gateway that asks for a login, as its handler meets it.
public struct GatewayChallenge: Sendable {
    /// The gateway's response: its login page, mostly.
    public let response: ExaminedResponse
    /// Whether a form was submitted in this conversation already, after which it asks again: the answer was wrong.
    public let isRepeated: Bool
    /// The world, as the conversation has it.
    public let conversation: Conversation

    /// A challenge.
    public init(response: ExaminedResponse, isRepeated: Bool, conversation: Conversation) {
        self.response = response
        self.isRepeated = isRepeated
        self.conversation = conversation
    }
}

extension ExaminedResponse {
    /// The body's beginning as text; invalid UTF-8 becomes U+FFFD. Empty where there is none.
    public var text: String { String(decoding: body ?? [], as: UTF8.self) }

    /// The body as JSON, also within the comment that servers of Worklight 6.x and MobileFirst 7.x hide it in
    /// (`/*-secure-` … `*/`).
    public var json: JSONValue? { body.flatMap { JSONValue(parsing: ResourceCheckMessage.unwrapped($0)) } }
}
