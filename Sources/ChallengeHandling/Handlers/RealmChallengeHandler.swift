// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// A handler as MobileFirst 7.1 and Worklight 6.x have them for custom realms (`WL.Client.createChallengeHandler(realm)`), so that
/// code for those has a way over: a `GatewayChallengeHandler` by the older names.
///
/// `submitFailure` of 7.1 is `cancel`, as in 8.0; there is `submitFailure(_:)` for it.
public protocol RealmChallengeHandler: GatewayChallengeHandler {
    /// The realm's name.
    var realm: String { get }
    /// What 8.0 calls `canHandleResponse`. The response may be a page with a form, or JSON of the adapter's own in place of a
    /// result (`ExaminedResponse.json`).
    func isCustomResponse(_ response: ExaminedResponse) -> Bool
}

extension RealmChallengeHandler {
    /// The realm's name.
    public var gatewayName: String { realm }

    /// Adapters answer with JSON, which some servers call a script or plain text.
    public var bodyTypes: [String] {
        ["text/html", "application/xhtml+xml", "application/json", "text/javascript", "text/plain"]
    }

    /// The same by its older name.
    public func canHandleResponse(_ response: ExaminedResponse) -> Bool { isCustomResponse(response) }
}

extension GatewayAnswer {
    /// What 7.1 calls `cancel`: the requests that wait for the login fail with this reason.
    public static func submitFailure(_ reason: String) -> GatewayAnswer { .cancel(reason: reason) }

    /// Calls a procedure of an adapter with the answer: a POST to `invoke` of the server.
    ///
    /// - Parameters:
    ///   - context: The path of the server's context root, `/worklight`.
    ///   - adapter: The adapter's name.
    ///   - procedure: The procedure's name.
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
