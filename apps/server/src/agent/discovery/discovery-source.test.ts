import { describe, expect, it } from "vitest";
import { BadValue } from "../../configuration/setting.ts";
import { discoverySource } from "./discovery-source.ts";

describe("where servers are discovered", () => {
	it.each([
		["dns:a.example", { scheme: "http", name: "a.example", port: 7575, hasServices: false }],
		["dns:a.example:80", { scheme: "http", port: 80 }],
		["dns:https://a.example", { scheme: "https", name: "a.example", port: 7575 }],
		["dns:https://_plinth._tcp.example", { name: "_plinth._tcp.example", hasServices: true }],
		["file:/etc/plinth/servers", { path: "/etc/plinth/servers" }],
		["file:servers", { path: "servers" }],
	])("is read from %s", (text, source) => {
		expect(discoverySource(text)).toMatchObject({ text, ...source });
	});

	it.each([
		...["a:7575", "dns:", "file:", "dns:a b", "dns:http://", "dns:a/b", "dns:ftp://a", "dns:-a"],
		...["dns:a:0", "dns:a:65536", "dns:_plinth._tcp.example:7575", `dns:${"a".repeat(254)}`],
	])("is not %s", (text) => {
		expect(() => discoverySource(text)).toThrow(BadValue);
	});
});
