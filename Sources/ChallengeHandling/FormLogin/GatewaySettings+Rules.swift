// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension GatewaySettings {
    /// The preset's rules, changed by what the configuration names.
    var rules: GatewayRules {
        var rules =
            switch preset {
            case .jSecurityCheck: GatewayRules.jSecurityCheck
            case .webseal: GatewayRules.webSEAL
            case .none: GatewayRules(detect: [], steps: [])
            }
        if !detect.isEmpty {
            // What the preset knows its page by still tells that a login has not worked.
            rules.markers += rules.detect
            rules.detect = detect
        }
        if login.count == 1, let preset = rules.steps.first, let step = login.first {
            rules.steps = [self.step(step, over: preset)]
        } else if !login.isEmpty {
            rules.steps = login.map { step($0, over: GatewayStep(target: .form)) }
        }
        if !success.isEmpty { rules.success = success }
        rules.failed = failed + rules.failed
        if let names = passedCookies { rules.callerCookies = Set(names) }
        rules.inject = inject.map { .init(name: $0.name.rawName, value: $0.value) }
        return rules
    }

    /// `preset` with what `step` names in its place; parameters by their names.
    private func step(_ step: LoginStep, over preset: GatewayStep) -> GatewayStep {
        var result = preset
        if let page = step.page { result.page = page.text }
        switch step.target {
        case .address(let address): result.target = .address(address.text)
        case .form: result.target = .form
        case nil: break
        }
        result.method = step.method.rawValue
        for parameter in step.parameters {
            if let index = result.parameters.firstIndex(where: { $0.name == parameter.name }) {
                result.parameters[index] = parameter
            } else {
                result.parameters.append(parameter)
            }
        }
        if let hidden = step.hiddenFields { result.hiddenFields = hidden }
        result.body = step.body
        result.headers = step.headers.map { .init(name: $0.name.rawName, value: $0.value) }
        result.timeout = step.timeout
        result.success = step.success
        result.failed = step.failed
        result.extraction = step.extraction
        return result
    }
}
