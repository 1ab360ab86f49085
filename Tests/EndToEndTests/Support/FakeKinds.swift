// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension FakeKind {
    /// WebSEAL over plain HTTP.
    static let webSEAL = FakeKind(script: "webseal", challenge: "gateway: webseal")
    /// The same over TLS, with another session cookie, which is `Secure`.
    static let webSEALBehindTLS = FakeKind(
        script: "webseal", certificate: "server.pem", challenge: "gateway: webseal")
    /// WebSEAL that redirects to pages of its own making.
    static let webSEALByRedirect = FakeKind(
        script: "webseal", arguments: ["--local-response-redirect"], challenge: "gateway: webseal")
    /// Open Liberty or WebSphere.
    static let liberty = FakeKind(
        script: "liberty", arguments: ["${FOLDER}/ltpa.keys"], challenge: "gateway: j-security-check")
    /// Jetty, whose redirect nothing but the configuration tells.
    static let jetty = FakeKind(
        script: "jetty",
        challenge: "gateway: j-security-check\ndetect: { status: [302, 303], redirect-to: /login.html }")
    /// Jetty that forwards to its login page.
    static let jettyDispatching = FakeKind(
        script: "jetty", arguments: ["--dispatch"], challenge: "gateway: j-security-check")
    /// Undertow or WildFly.
    static let undertow = FakeKind(script: "undertow", challenge: "gateway: j-security-check")

    /// An interface for programs, whose login answers with a token.
    static let token = FakeKind(
        script: "token-login",
        challenge: """
            gateway: none
            detect: { status: [401], content-type: application/json }
            login:
              url: /api/login
              body: json
              parameters: { user: "{username}", password: "{password}" }
              extract: { token: /data/token }
              expires: /data/expires_in
            failed: [{ body-contains: '"credentials"', because: wrong-password }]
            inject: { Authorization: "Session {token}" }
            """)

    /// The same with further arguments.
    func with(_ arguments: String...) -> FakeKind {
        var kind = self
        kind.arguments += arguments
        return kind
    }
}
