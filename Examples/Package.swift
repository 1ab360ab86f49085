// swift-tools-version: 6.2
import PackageDescription

// A package that depends on Countersign: here by its path, elsewhere by
// `.package(url: "https://github.com/OWNER/countersign", from: "0.1.0")`.
let client: [Target.Dependency] = [
    .product(name: "ChallengeClient", package: "countersign"),
    .product(name: "ChallengeHandling", package: "countersign"),
]
let package = Package(
    name: "examples",
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .executableTarget(
            name: "own-countersign",
            dependencies: client + [.product(name: "CountersignDaemon", package: "countersign")]),
        .target(name: "ClientExamples", dependencies: client, path: "Sources/LoginExamples"),
    ]
)
