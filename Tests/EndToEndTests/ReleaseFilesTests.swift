// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

/// The files of `make release`, as other programs read them.
@Suite("The files of a release")
struct ReleaseFilesTests {
    /// Runs Tests/Scripts/release-files, quickly instead of small.
    private func make(_ name: String, zone: String = "UTC", mask: String = "022", in folder: Folder) async throws
        -> String
    {
        let path = folder.path(of: name)
        var environment = [
            "BINARY": Binary.path, "OUTPUT": path, "TZ": zone, "DPKG_DEB_COMPRESSOR_TYPE": "gzip",
            "DPKG_DEB_COMPRESSOR_LEVEL": "1",
        ]
        // The script asks Swift for its version, and finds Swift by this machine's PATH.
        if let path = unsafe getenv("PATH") { environment["PATH"] = unsafe String(cString: path) }
        let made = try await Command.run(
            ["bash", "-c", "umask \(mask); exec \(Repository.path(of: "Tests/Scripts/release-files"))"],
            environment: environment, in: folder)
        try #require(made.exit == 0, "\(made.errors)")
        return path
    }

    @Test("are what their checksums and their list of materials say, and what other programs read and run")
    func files() async throws {
        try await Slots.run {
            let folder = try Folder()
            let release = try await make("release", in: folder)
            let names = Set(entries(of: release))
            #expect(names.count == 5 && names.contains("SHA256SUMS"), "\(names)")
            let summed = try await Command.run(
                ["bash", "-c", "cd \(release) && sha256sum --strict --check SHA256SUMS"], in: folder)
            #expect(summed.exit == 0 && summed.output.split(separator: "\n").count == 4, "\(summed)")
            func file(_ end: String) throws -> String {
                "\(release)/\(try #require(names.first { $0.hasSuffix(end) }, "no \(end)"))"
            }
            let fields = try await Command.run(["dpkg-deb", "--field", try file(".deb"), "Package"], in: folder)
            #expect(fields.output == "countersign\n", "\(fields)")
            try await expectArchive(try file(".tar.gz"), in: folder)
            try await expectMaterials(try file(".spdx.json"), sums: "\(release)/SHA256SUMS", in: folder)
            try await expectImage(try file(".oci.tar"), in: folder)
        }
    }

    /// By the commands that its INSTALL gives, the archive is installed, and runs.
    private func expectArchive(_ path: String, in folder: Folder) async throws {
        for name in ["unpacked", "local"] { folder.makeFolder(name) }
        let commands = """
            set -e
            tar -xzf \(path) -C \(folder.path(of: "unpacked")) --strip-components=1
            cd \(folder.path(of: "unpacked"))
            grep 'cp -R' INSTALL | sed 's|sudo||; s|/usr/local/|\(folder.path(of: "local"))|' | bash
            """
        let unpacked = try await Command.run(["bash", "-c", commands], in: folder)
        #expect(unpacked.exit == 0, "\(unpacked)")
        #expect(folder.text(of: "unpacked/INSTALL").contains("libcurl 7.88"))
        let run = try await Command.run([folder.path(of: "local/bin/countersign"), "--version"], in: folder)
        #expect(run.output == "0.1.0-dev\n", "\(run)")
        let unit = folder.text(of: "local/lib/systemd/system/countersign.service")
        #expect(unit.contains("ExecStart=/usr/local/bin/countersign serve"))
        for file in ["share/man/man5/countersign.yaml.5", "share/doc/countersign/copyright"] {
            #expect(!folder.text(of: "local/\(file)").isEmpty, "\(file)")
        }
    }

    /// Expects that a validator accepts the list, which has each Swift package, the program's dependencies, and the
    /// checksums.
    private func expectMaterials(_ path: String, sums: String, in folder: Folder) async throws {
        let validated = try await Repository.script("spdx-validator", [path], in: folder)
        #expect(validated.exit == 0, "\(validated)")
        let text = String(decoding: readFile(path), as: UTF8.self)
        for line in String(decoding: readFile(sums), as: UTF8.self).split(separator: "\n") where !line.hasSuffix("json")
        {
            #expect(text.contains("\"checksumValue\": \"\(line.prefix(64))\""), "\(line)")
        }
        let packages = Repository.text(of: "Package.swift").matches(of: /url: "https:\/\/github.com\/apple\/([a-z-]+)"/)
        #expect(packages.count >= 4)
        for package in packages {
            #expect(text.contains("pkg:swift/github.com/apple/\(package.1)@"), "\(package.1)")
        }
        for name in ["boringssl", "libyaml-dev", "libcurl4", "libsystemd0", "ca-certificates"] {
            #expect(text.contains("\"name\": \"\(name)\""), "\(name)")
        }
        let broken = folder.write(
            text.replacing("\"SPDXRef-libyaml-dev\"", with: "\"SPDXRef-\", \"x\": \"\""), to: "broken.spdx.json")
        #expect(try await Repository.script("spdx-validator", [broken], in: folder).exit != 0)
    }

    /// Two readers of images take it; unpacked, it runs as its user.
    private func expectImage(_ path: String, in folder: Folder) async throws {
        for form in ["oci-archive", "docker-archive"] {
            let seen = try await Command.run(["skopeo", "inspect", "--config", "\(form):\(path)"], in: folder)
            #expect(seen.output.contains("\"User\": \"65532:65532\"") && seen.errors.isEmpty, "\(form): \(seen)")
            #expect(seen.output.contains("CREDENTIALS_DIRECTORY=/run/secrets/countersign"), "\(form)")
        }
        let layout = folder.path(of: "layout")
        let copied = try await Command.run(["skopeo", "copy", "oci-archive:\(path)", "oci:\(layout):one"], in: folder)
        #expect(copied.exit == 0, "\(copied)")
        let bundle = folder.path(of: "bundle")
        let rootless = getuid() == 0 ? [] : ["--rootless"]
        let unpacked = try await Command.run(
            ["umoci", "unpack"] + rootless + ["--image", "\(layout):one", bundle], in: folder)
        #expect(unpacked.exit == 0, "\(unpacked)")
        #expect(folder.text(of: "bundle/rootfs/etc/passwd").hasPrefix("countersign:x:65532:65532:"))
        if getuid() != 0 { try Test.cancel("only root may enter the image") }
        let run = try await Command.run(
            [
                "unshare", "--mount", "bash", "-c",
                "mount --rbind /proc $0/proc && exec chroot --userspec=65532:65532 $0 /usr/bin/countersign --version",
                folder.path(of: "bundle/rootfs"),
            ], in: folder)
        #expect(run.output == "0.1.0-dev\n", "\(run)")
        let owner = try await Command.run(
            ["stat", "-c", "%u %a", folder.path(of: "bundle/rootfs/var/lib/countersign")], in: folder)
        #expect(owner.output == "65532 700\n")
    }

    @Test("are the same bytes each time, in any time zone and with any umask, and take the place of none but their own")
    func reproducible() async throws {
        try await Slots.run {
            let folder = try Folder()
            let one = try await make("one", zone: "Asia/Tokyo", mask: "077", in: folder)
            let other = try await make("other", in: folder)
            #expect(readFile("\(one)/SHA256SUMS") == readFile("\(other)/SHA256SUMS"))
            #expect(entries(of: one).count == 5)
            folder.makeFolder("mine")
            folder.write("mine", to: "mine/letter")
            let refused = try await Repository.script(
                "release-files", environment: ["BINARY": Binary.path, "OUTPUT": folder.path(of: "mine")], in: folder)
            #expect(refused.exit == 73 && folder.text(of: "mine/letter") == "mine", "\(refused)")
        }
    }
}
