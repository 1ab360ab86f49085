// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// The only ways out of a gateway's challenge, besides throwing.
public enum GatewayAnswer: Sendable {
    /// Nothing is sent; the requests that wait for the login fail with this reason: one sentence without secrets.
    case cancel(reason: String)
    /// This form is submitted, and `onSuccess` or `onFailure` told of the answer.
    case submitForm(LoginForm)
    /// The login has worked, or is none of the handler's business: the original request is sent again. Before that the
    /// address that showed the page is asked for; if the gateway still answers, the form was wrong.
    case submitSuccess

    /// Submits a login form: a POST of `parameters` as `application/x-www-form-urlencoded`, or a GET with them as query.
    ///
    /// - Parameters:
    ///   - url: Where to, absolute or relative to the page (RFC 3986 section 5). Another origin than the page's has to be among
    ///     the login origins of the configuration, or nothing is sent.
    ///   - parameters: Names and values.
    ///   - headers: Further fields of the request.
    ///   - timeout: How long is waited for the answer; 10 000 ms where it is zero or negative.
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

/// A login form that is filled in.
public struct LoginForm: Sendable {
    /// Where it goes, absolute or relative to the page.
    public var url: String
    /// Names and values, in order.
    public var parameters: [(name: String, value: Secret)]
    /// Further fields of the request.
    public var headers: HTTPFields
    /// How long is waited for the answer; 10 000 ms where it is zero or negative.
    public var timeout: Duration
    /// `POST` or `GET`.
    public var method: HTTPRequest.Method

    /// A form; the defaults are those of `submitLoginForm`.
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

    /// The request that submits it from `page`; `nil` where its address is none, or its method another.
    func request(from page: ExaminedResponse) -> SideRequest? {
        guard var url = page.url.resolving(url), method == .post || method == .get else { return nil }
        var fields: HTTPFields = [.accept: GatewayForm.pageTypes]
        var body: Secret?
        if method == .get {
            let pairs = parameters.map { (name: $0.name, value: $0.value.revealText()) }
            let query = [url.query, pairs.isEmpty ? nil : FormEncoding.query(pairs)].compactMap(\.self)
            url = WebURL(
                origin: url.origin, path: url.path, query: query.isEmpty ? nil : query.joined(separator: "&"))
        } else {
            body = FormEncoding.body(parameters)
            fields[.contentType] = FormEncoding.mediaType
            // As a browser does; frameworks take it for a sign that the form came from their page.
            fields[.origin] = page.url.origin.description
            fields[.referer] = "\(page.url.origin)\(page.url.path)"
        }
        for field in headers { fields[field.name] = field.value }
        let timeout = timeout > .zero ? timeout : .milliseconds(10_000)
        return SideRequest(method: method, url: url, fields: fields, body: body, timeout: timeout)
    }

    /// What is the same for the same answer.
    var fingerprint: Secret { .joining([Secret("\(method.rawValue) \(url)\n"), FormEncoding.body(parameters)]) }
}
