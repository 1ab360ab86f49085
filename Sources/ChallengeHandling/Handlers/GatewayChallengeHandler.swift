// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// Program-defined handler of a gateway's login page.
///
/// A gateway is a server in front of others that requires a form before it lets a request pass, and that is not
/// announced by an HTTP status.
///
/// The names are those of MobileFirst 8.0. Differences: the methods *return* the next action, so that it cannot be
/// forgotten; a form is submitted apart from the program's requests, with separate cookies; and success is decided by
/// `canHandleResponse`, never by status 200 alone.
public protocol GatewayChallengeHandler: Sendable {
    /// Name of the gateway, chosen by the program and used in failures.
    var gatewayName: String { get }
    /// Media types whose bodies `canHandleResponse` needs, in lower case; by default those of pages.
    ///
    /// Responses of other types are examined by their heads.
    var bodyTypes: [String] { get }

    /// Returns true if `response` comes from the gateway and requires a login.
    ///
    /// Called for every response of any status, perhaps more than once, on the client's own thread: must not block or
    /// have effects. The body, if present, is limited to its first 64 KiB.
    func canHandleResponse(_ response: ExaminedResponse) -> Bool
    /// Answers the gateway; called again in the same conversation if the login page appears again.
    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer
    /// Decides after a form was answered with 200 and without the login page; by default `submitSuccess`.
    func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer
    /// Decides after a form was answered with another status and without the login page.
    ///
    /// By default `cancel` for 400 and above, otherwise `submitSuccess`.
    func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer
}

extension GatewayChallengeHandler {
    /// Media types of pages.
    public var bodyTypes: [String] { ["text/html", "application/xhtml+xml"] }

    /// Returns `submitSuccess`: the login has succeeded, unless the gateway asks again.
    public func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer { .submitSuccess }

    /// Returns `submitSuccess` below 400: a redirect to another server or a 204 is as good as 200.
    public func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        response.status < 400
            ? .submitSuccess : .cancel(reason: "The login was answered with status \(response.status).")
    }
}

/// Gateway's challenge, as passed to its handler.
public struct GatewayChallenge: Sendable {
    /// Response of the gateway, usually its login page.
    public let response: ExaminedResponse
    /// True if a form was already submitted in this conversation: the answer was wrong.
    public let isRepeated: Bool
    /// Environment of the conversation.
    public let conversation: Conversation

    /// Creates a challenge.
    public init(response: ExaminedResponse, isRepeated: Bool, conversation: Conversation) {
        self.response = response
        self.isRepeated = isRepeated
        self.conversation = conversation
    }
}

extension ExaminedResponse {
    /// Beginning of the body as text, with U+FFFD for invalid UTF-8; empty without a body.
    public var text: String { String(decoding: body ?? [], as: UTF8.self) }

    /// Body as JSON, with or without the comment of Worklight 6.x and MobileFirst 7.x (`/*-secure-` … `*/`).
    public var json: JSONValue? { body.flatMap { JSONValue(parsing: ResourceCheckMessage.unwrapped($0)) } }
}

/// Possible results of a gateway's challenge, besides throwing.
public enum GatewayAnswer: Sendable {
    /// Send nothing; the waiting requests fail with this reason, one sentence without secrets.
    case cancel(reason: String)
    /// Submit this form, and pass the response to `onSuccess` or `onFailure`.
    case submitForm(LoginForm)
    /// Send the original request again, because the login has succeeded or is not the handler's concern.
    ///
    /// Before this, the address that showed the page is requested: if the gateway still answers, the form was wrong.
    case submitSuccess

    /// Returns a result that submits a login form.
    ///
    /// A POST of `parameters` as `application/x-www-form-urlencoded`, or a GET with them as the query.
    ///
    /// - Parameters:
    ///   - url: The target, absolute or relative to the page (RFC 3986 §5). An origin other than the page's must be
    ///     among the configured login origins, or nothing is sent.
    ///   - parameters: Names and values.
    ///   - headers: Further fields of the request.
    ///   - timeout: The timeout of the request; 10 000 ms if zero or negative.
    ///   - method: `POST` or `GET`.
    public static func submitLoginForm(
        url: String, parameters: KeyValuePairs<String, String> = [:], headers: HTTPFields = [:],
        timeout: Duration = .milliseconds(10_000), method: HTTPRequest.Method = .post
    ) -> GatewayAnswer {
        .submitForm(
            LoginForm(
                url: url, parameters: parameters.map { ($0.key, Secret($0.value)) }, headers: headers,
                timeout: timeout, method: method))
    }
}

/// Completed login form.
public struct LoginForm: Sendable {
    /// Target, absolute or relative to the page.
    public var url: String
    /// Names and values, in order.
    public var parameters: [(name: String, value: Secret)]
    /// Further fields of the request.
    public var headers: HTTPFields
    /// Timeout of the request; 10 000 ms if zero or negative.
    public var timeout: Duration
    /// Method: `POST` or `GET`.
    public var method: HTTPRequest.Method

    /// Creates a form, with the defaults of `submitLoginForm`.
    public init(
        url: String, parameters: [(name: String, value: Secret)] = [], headers: HTTPFields = [:],
        timeout: Duration = .milliseconds(10_000), method: HTTPRequest.Method = .post
    ) {
        self.url = url
        self.parameters = parameters
        self.headers = headers
        self.timeout = timeout
        self.method = method
    }

    /// Returns the request that submits the form from `page`; nil for an invalid address or method.
    func request(from page: ExaminedResponse) -> SideRequest? {
        guard let url = page.url.resolving(url), method == .post || method == .get else { return nil }
        var request = SideRequest.submitting(
            parameters, to: url, method, from: page, timeout: timeout > .zero ? timeout : .milliseconds(10_000))
        for field in headers { request.fields[field.name] = field.value }
        return request
    }

    /// Text that is equal for equal answers.
    var fingerprint: Secret { .joining([Secret("\(method.rawValue) \(url)\n"), FormEncoding.body(parameters)]) }
}

/// Handler of a custom realm by the names of MobileFirst 7.1 and Worklight 6.x.
///
/// A `GatewayChallengeHandler` under the names of `WL.Client.createChallengeHandler(realm)`, to ease migration.
/// `submitFailure` of 7.1 is `cancel`, as in 8.0; `submitFailure(_:)` exists too.
public protocol RealmChallengeHandler: GatewayChallengeHandler {
    /// Name of the realm.
    var realm: String { get }
    /// Returns true for a response of the realm; `canHandleResponse` in 8.0.
    ///
    /// The response may be a page with a form, or JSON of the adapter instead of a result (`ExaminedResponse.json`).
    func isCustomResponse(_ response: ExaminedResponse) -> Bool
    /// Returns true if a redirect to `address`, at the server's own origin, may lead to the realm's login page.
    ///
    /// Jetty and Liberty redirect to their login page; clients of 7.1 follow the redirect before they ask `isCustomResponse`. By default
    /// the last part of the path begins or ends with `login`, `logon`, `signin` or `sign-in`.
    func isLoginPage(_ address: WebURL) -> Bool
}

extension RealmChallengeHandler {
    /// Returns true if the last part of the path, without its extension, begins or ends with a usual name of a login page.
    public func isLoginPage(_ address: WebURL) -> Bool {
        let part = address.path.split(separator: "/").last?.prefix { $0 != ";" && $0 != "." }.lowercased() ?? ""
        return ["login", "logon", "signin", "sign-in"].contains { part.hasPrefix($0) || part.hasSuffix($0) }
    }

    /// Name of the realm.
    public var gatewayName: String { realm }

    /// Media types of pages and JSON, which some servers declare as a script or plain text.
    public var bodyTypes: [String] {
        ["text/html", "application/xhtml+xml", "application/json", "text/javascript", "text/plain"]
    }

    /// Calls `isCustomResponse`, the older name, or looks at the target of a redirect.
    public func canHandleResponse(_ response: ExaminedResponse) -> Bool {
        if isCustomResponse(response) { return true }
        guard response.method.isRetrieval, let next = GatewayClient.redirectWithinOrigin(in: response) else {
            return false
        }
        return isLoginPage(next)
    }
}

extension GatewayAnswer {
    /// Returns `cancel`, under its name in 7.1: the waiting requests fail with this reason.
    public static func submitFailure(_ reason: String) -> GatewayAnswer { .cancel(reason: reason) }

    /// Returns an answer that calls a procedure of an adapter: a POST to the server's `invoke`.
    ///
    /// - Parameters:
    ///   - context: The path of the server's context root, `/worklight`.
    ///   - adapter: The name of the adapter.
    ///   - procedure: The name of the procedure.
    ///   - parameters: Its arguments.
    public static func submitAdapterAuthentication(
        context: String = "/worklight", adapter: String, procedure: String, parameters: [JSONValue]
    ) -> GatewayAnswer {
        .submitLoginForm(
            url: "\(context)/invoke",
            parameters: [
                "adapter": adapter, "procedure": procedure,
                "parameters": String(decoding: JSONValue.array(parameters).serialized(), as: UTF8.self),
                "isAjaxRequest": "true",
            ])
    }
}
