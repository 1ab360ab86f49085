# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Programs with the HTTP libraries of other languages. Each prints status, length and MD5 of: a file, a part of it, its HEAD, a missing
file, two odd targets, an upload in chunks and one of known length, and what was uploaded; and uses one connection where it can."""

import random

NODE = """
const crypto = require('crypto'), fs = require('fs')
const [url, sent] = process.argv.slice(2)
const say = async (path, options) => {
  const answer = await fetch(url + path, options), body = Buffer.from(await answer.arrayBuffer())
  console.log(path, answer.status, body.length, crypto.createHash('md5').update(body).digest('hex'), answer.headers.get('content-length'))
}
(async () => {
  await say('/file.bin')
  await say('/file.bin', {headers: {range: 'bytes=100-199'}})
  await say('/file.bin', {method: 'HEAD'})
  await say('/gone.txt')
  await say('/a[1].txt')
  await say('/a|b^.txt?q=m\u00fcnchen')
  const stream = new ReadableStream({start(to) { for (let i = 0; i < 9; i++) to.enqueue(Buffer.alloc(9000, 97 + i)); to.close() }})
  await say('/new1.bin', {method: 'PUT', body: stream, duplex: 'half'})
  await say('/new2.bin', {method: 'PUT', body: fs.readFileSync(sent)})
  await say('/new1.bin')
})()
"""
PYTHON = """
import hashlib, sys
url, sent = sys.argv[1:]
def say(path, status, body):
    print(path, status, len(body), hashlib.md5(body).hexdigest())
def pieces():
    for number in range(9):
        yield bytes([97 + number]) * 9000
ASKED = [
    ("GET", "/file.bin", {}), ("GET", "/file.bin", {"headers": {"Range": "bytes=100-199"}}), ("HEAD", "/file.bin", {}), ("GET", "/gone.txt", {}),
    ("GET", "/a[1].txt", {}), ("GET", "/a|b^.txt?q=m\u00fcnchen", {}), ("PUT", "/new1.bin", {BODY: pieces()}),
    ("PUT", "/new2.bin", {BODY: open(sent, "rb").read()}), ("GET", "/new1.bin", {})]
"""
REQUESTS = PYTHON.replace("BODY", '"data"') + """
import requests
with requests.Session() as session:
    for method, path, more in ASKED:
        answer = session.request(method, url + path, **more)
        say(path, answer.status_code, answer.content)
"""
HTTPX = PYTHON.replace("BODY", '"content"') + """
import httpx
with httpx.Client(timeout=30) as session:
    for method, path, more in ASKED:
        answer = session.request(method, url + path, **more)
        say(path, answer.status_code, answer.content)
"""
AIOHTTP = PYTHON.replace("BODY", '"data"').replace("def pieces", "async def pieces") + """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        for method, path, more in ASKED:
            async with session.request(method, url + path, **more) as answer:
                say(path, answer.status, await answer.read())
asyncio.run(main())
"""
PERL = r"""
use strict; use LWP::UserAgent; use HTTP::Request; use Digest::MD5 'md5_hex';
my ($url, $sent) = @ARGV;
my $agent = LWP::UserAgent->new(keep_alive => 1);
sub say_it { my ($method, $path, $fields, $body) = @_;
  my $answer = $agent->request(HTTP::Request->new($method, $url . $path, $fields, $body));
  print "$path ", $answer->code, " ", length($answer->content), " ", md5_hex($answer->content), " ", $answer->header('Content-Length') // '', "\n" }
open(my $file, '<:raw', $sent); my $all = do { local $/; <$file> };
my $count = 0;
say_it('GET', '/file.bin');
say_it('GET', '/file.bin', [Range => 'bytes=100-199']);
say_it('HEAD', '/file.bin');
say_it('GET', '/gone.txt');
say_it('GET', '/a[1].txt');
say_it('GET', '/a|b^.txt?q=m%C3%BCnchen');
say_it('PUT', '/new1.bin', [], sub { $count++ < 9 ? chr(96 + $count) x 9000 : '' });
say_it('PUT', '/new2.bin', [], $all);
say_it('GET', '/new1.bin');
"""
PHP = r"""<?php
[$_, $url, $sent] = $argv;
function say($method, $path, $fields = '', $body = null) {
    global $url;
    $options = ['method' => $method, 'header' => $fields, 'ignore_errors' => true, 'protocol_version' => 1.1];
    if ($body !== null) $options['content'] = $body;
    $got = file_get_contents($url . $path, false, stream_context_create(['http' => $options]));
    echo $path, ' ', substr($http_response_header[0], 9, 3), ' ', strlen($got), ' ', md5($got), "\n";
}
say('GET', '/file.bin');
say('GET', '/file.bin', 'Range: bytes=100-199');
say('HEAD', '/file.bin');
say('GET', '/gone.txt');
say('GET', '/a[1].txt');
say('GET', '/a|b^.txt?q=m%C3%BCnchen');
say('PUT', '/new2.bin', 'Content-Type: application/octet-stream', file_get_contents($sent));
say('GET', '/new2.bin');
"""
JAVA = """
import java.net.URI;
import java.net.http.*;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.io.ByteArrayInputStream;
import java.util.HexFormat;
public class Calls {
    static HttpClient client = HttpClient.newHttpClient();
    static String url;
    static void say(String path, HttpRequest.Builder request) throws Exception {
        var answer = client.send(request.uri(URI.create(url + path)).build(), HttpResponse.BodyHandlers.ofByteArray());
        var sum = HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(answer.body()));
        System.out.println(path + " " + answer.statusCode() + " " + answer.body().length + " " + sum
            + " " + answer.headers().firstValue("content-length").orElse(""));
    }
    public static void main(String[] words) throws Exception {
        url = words[0];
        say("/file.bin", HttpRequest.newBuilder());
        say("/file.bin", HttpRequest.newBuilder().header("Range", "bytes=100-199"));
        say("/file.bin", HttpRequest.newBuilder().method("HEAD", HttpRequest.BodyPublishers.noBody()));
        say("/gone.txt", HttpRequest.newBuilder());
        say("/a%5B1%5D.txt", HttpRequest.newBuilder());
        var piece = "a hen".repeat(20000).getBytes();
        say("/new1.bin", HttpRequest.newBuilder().PUT(HttpRequest.BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(piece))));
        say("/new2.bin", HttpRequest.newBuilder().PUT(HttpRequest.BodyPublishers.ofFile(Path.of(words[1]))));
        say("/new1.bin", HttpRequest.newBuilder());
    }
}
"""


def program(name, text, *command):
    def run(client):
        path = client.file(name, text.encode())
        client.run(*command, path, client.url, client.file("sent", random.Random(3).randbytes(200_000)))
    return run


PROGRAMS = {
    "node fetch": program("calls.cjs", NODE, "node"),
    "requests": program("calls.py", REQUESTS, "/usr/bin/python3"),
    "httpx": program("calls.py", HTTPX, "/usr/bin/python3"),
    "aiohttp": program("calls.py", AIOHTTP, "/usr/bin/python3"),
    "LWP": program("calls.pl", PERL, "perl"),
    "PHP streams": program("calls.php", PHP, "php"),
    "Java HttpClient": program("Calls.java", JAVA, "java", "-Xmx128m", "-XX:TieredStopAtLevel=1"),
}
