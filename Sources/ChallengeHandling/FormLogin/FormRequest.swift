// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

extension SideRequest {
    /// The media types that a browser accepts. Content-aware gateways answer by the first one.
    static let pageTypes = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"

    /// Returns the request that submits `parameters` from `page` as a browser does. GET and HEAD append them to the
    /// query of `url`.
    static func submitting(
        _ parameters: [(name: String, value: Secret)], as body: GatewayStep.Body = .form, to url: WebURL,
        _ method: HTTPRequest.Method, from page: ExaminedResponse, timeout: Duration
    ) -> SideRequest {
        var request = SideRequest(method: method, url: url, fields: [.accept: pageTypes], timeout: timeout)
        guard method != .get, method != .head else {
            let pairs = parameters.map { (name: $0.name, value: $0.value.revealText()) }
            let query = [url.query, pairs.isEmpty ? nil : FormEncoding.query(pairs)].compactMap(\.self)
            request.url = WebURL(
                origin: url.origin, path: url.path, query: query.isEmpty ? nil : query.joined(separator: "&"))
            return request
        }
        switch body {
        case .form:
            request.body = FormEncoding.body(parameters)
            request.fields[.contentType] = FormEncoding.mediaType
            request.nameOrigin(of: page)
            return request
        case .json:
            var members: [String: JSONValue] = [:]
            for parameter in parameters { members[parameter.name] = .string(parameter.value.revealText()) }
            return submitting(SecretJSON(.object(members)), to: url, method, from: page, timeout: timeout)
        }
    }

    /// Returns the request that submits a form of `page` as a browser does; `nil` if the system cannot convert to the form's
    /// encoding. By GET, the entries replace the query of `url`, or are appended to it.
    static func submitting(
        _ form: FormSubmission, to url: WebURL, _ method: HTTPRequest.Method, from page: ExaminedResponse,
        timeout: Duration, replacingQuery: Bool
    ) -> SideRequest? {
        var request = SideRequest(method: method, url: url, fields: [.accept: pageTypes], timeout: timeout)
        guard method != .get, method != .head else {
            guard let written = form.query()?.revealText() else { return nil }
            let query = [replacingQuery ? nil : url.query, written.isEmpty ? nil : written].compactMap(\.self)
            let isEmpty = query.isEmpty && !replacingQuery
            request.url = WebURL(
                origin: url.origin, path: url.path, query: isEmpty ? nil : query.joined(separator: "&"))
            return request
        }
        guard let (type, body) = form.encoded() else { return nil }
        request.body = body
        request.fields[.contentType] = type
        request.nameOrigin(of: page)
        return request
    }

    /// Returns the request that sends `json` from `page` as a page's script does.
    static func submitting(
        _ json: SecretJSON, to url: WebURL, _ method: HTTPRequest.Method, from page: ExaminedResponse,
        timeout: Duration
    ) -> SideRequest {
        let fields: HTTPFields = [.accept: "application/json, */*;q=0.8", .contentType: "application/json"]
        var request = SideRequest(method: method, url: url, fields: fields, timeout: timeout)
        request.body = json.text
        request.nameOrigin(of: page)
        return request
    }

    /// Names the page: frameworks check that a form came from their own. The page's query is left out.
    private mutating func nameOrigin(of page: ExaminedResponse) {
        fields[.origin] = page.url.origin.description
        fields[.referer] = "\(page.url.origin)\(page.url.path)"
    }
}
