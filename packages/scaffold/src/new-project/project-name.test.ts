import { describe, expect, it } from "vitest";
import { checkProjectName, protoPackage } from "./project-name.ts";

describe("the name of a project", () => {
	it.each(["my-platform", "shop", "web2", "a.b_c-d", "x1", "node", "class-room", "a".repeat(60)])(
		"can be %s",
		(name) => expect(() => checkProjectName(name)).not.toThrow(),
	);

	it.each([
		["MyPlatform", "my-platform"],
		["my platform", "my-platform"],
		["my--platform", "my-platform"],
		["3d-shop", "d-shop"],
		["_shop-", "shop"],
		["Größe", "gr-e"],
		["@acme/shop", "acme-shop"],
		["a".repeat(61), "a".repeat(60)],
	])("can't be %s: %s is suggested", (name, suggestion) => {
		expect(() => checkProjectName(name)).toThrow(
			`"${name}" can't be the name of a project, since it is also the name of an npm package and of a Protobuf package: use 2 to 60 lower-case letters and digits, with single hyphens, underscores or dots between them, beginning with a letter, as in ${suggestion}`,
		);
	});

	it.each(["", "x", "42", "...", "日本", "Class"])(
		"can't be '%s', without a suggestion",
		(name) => {
			expect(() => checkProjectName(name)).toThrow(/beginning with a letter$/);
		},
	);

	it.each([
		["plinth", "the Protobuf package plinth is not yours to define"],
		["tenancy", "the Protobuf package tenancy is not yours to define"],
		["typescript", "the name is reserved for a package of npm, or a module of Node.js"],
		["node_modules", "the name is reserved for a package of npm, or a module of Node.js"],
		["http", "the name is reserved for a package of npm, or a module of Node.js"],
		["message", "it is a keyword of Protobuf"],
		["class", "it is a keyword of a language for which clients may be generated"],
	])("can't be %s: %s", (name, reason) => {
		expect(() => checkProjectName(name)).toThrow(
			`"${name}" can't be the name of a project: ${reason}. Use another one, such as ${name}-platform`,
		);
	});

	it("becomes the first part of a Protobuf package", () => {
		expect(protoPackage("my-platform")).toBe("my_platform");
		expect(protoPackage("a.b_c-d2")).toBe("a_b_c_d2");
	});
});
