// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

/// Fields of a session, rendered from the templates of `inject` when the session begins.
package struct InjectedFields {
    /// Fields that are the same in all requests.
    package private(set) var constant: [InjectedField] = []
    /// Signer of the fields that differ between requests; nil if there are none.
    package private(set) var signer: (any RequestSigner)?

    /// True if there is no field.
    var isEmpty: Bool { constant.isEmpty && signer == nil }

    /// Renders `templates` with the fields of `credential`, and with values that the server has sent.
    ///
    /// Values of cookies are not rendered yet: they come from the cookies of each request.
    package init(
        _ templates: [InjectedTemplate], _ credential: Credential, received: (ValueSource) -> Secret? = { _ in nil }
    ) async throws(TemplateError) {
        var varying: [InjectedFieldSigner.Field] = []
        for template in templates {
            let hasCookie = template.value.sources.contains(where: \.isCookie)
            guard hasCookie || !template.methods.isEmpty else {
                constant.append(
                    InjectedField(
                        name: template.name, value: try await template.value.render(credential, received: received)))
                continue
            }
            var parts: [InjectedFieldSigner.Part] = []
            for part in template.value.parts {
                switch part {
                case .received(.cookie(let name)): parts.append(.cookie(name, isDecoded: false))
                case .received(.decodedCookie(let name)): parts.append(.cookie(name, isDecoded: true))
                default: parts.append(.constant(try await TextTemplate.value(of: part, credential, received)))
                }
            }
            varying.append(.init(name: template.name, methods: template.methods, parts: parts))
        }
        if !varying.isEmpty { signer = InjectedFieldSigner(varying) }
    }
}
