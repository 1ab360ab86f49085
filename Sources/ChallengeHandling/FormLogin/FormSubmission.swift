// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

extension SideRequest {
    /// The types that a browser says it takes. The first type decides what content-aware gateways answer.
    static let pageTypes = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"

    /// Submits `parameters` from `page`, as a browser does: with GET and HEAD as the query, behind what `url` has.
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
        case .json:
            var members: [String: JSONValue] = [:]
            for parameter in parameters { members[parameter.name] = .string(parameter.value.revealText()) }
            request.body = SecretJSON(.object(members)).text
            request.fields[.contentType] = "application/json"
            request.fields[.accept] = "application/json, */*;q=0.8"
        }
        // Frameworks take it for a sign that the form came from their page. Queries stay here.
        request.fields[.origin] = page.url.origin.description
        request.fields[.referer] = "\(page.url.origin)\(page.url.path)"
        return request
    }
}
