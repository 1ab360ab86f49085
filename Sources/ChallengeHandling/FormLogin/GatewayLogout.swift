// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets

/// Ends the session of a login page by one request with its cookies.
public struct GatewayLogout: SessionLogout {
    /// The challenge's name in the configuration.
    public let name: String
    /// The address that ends a session.
    public let url: WebURL
    /// The method.
    public let method: HTTPRequest.Method

    /// A logout.
    public init(name: String, url: WebURL, method: HTTPRequest.Method = .get) {
        self.name = name
        self.url = url
        self.method = method
    }

    /// Sends the request; a redirect, to the login page as a rule, is an answer like another. Nothing is sent where no cookie of the
    /// session goes there.
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        guard let cookies = session.cookies?.snapshot.header(for: url, now: conversation.now()) else { return }
        var request = SideRequest(method: method, url: url)
        request.fields[values: .cookie] = [cookies.revealText()]
        // What comes back is of no interest.
        request.isLook = true
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            throw LoginFailure(error, step: "the logout", challenge: name)
        }
        conversation.report(ConversationStep(challenge: name, text: "logout: \(response.status)"))
        guard response.status < 400 else {
            throw LoginFailure(
                .failed, challenge: name,
                detail: "The server answered the logout with status \(response.status). Check `logout`.")
        }
    }
}
