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
        guard let url = page.url.resolving(url), method == .post || method == .get else { return nil }
        var request = SideRequest.submitting(
            parameters, to: url, method, from: page, timeout: timeout > .zero ? timeout : .milliseconds(10_000))
        for field in headers { request.fields[field.name] = field.value }
        return request
    }

    /// What is the same for the same answer.
    var fingerprint: Secret { .joining([Secret("\(method.rawValue) \(url)\n"), FormEncoding.body(parameters)]) }
}
