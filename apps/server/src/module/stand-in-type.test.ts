import { create, toBinary } from "@bufbuild/protobuf";
import { Scope } from "@plinth/proto";
import { decode, defineType, idOf, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { ArtistSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { artist } from "../../testdata/music.ts";
import { standInType } from "./stand-in-type.ts";

describe("a stand-in for a type", () => {
	it("has its names and its scope, and keeps the content of its resources", () => {
		const standIn = standInType("music.v1.Artist", "namespace");
		const { type, scope, key } = defineType(ArtistSchema);
		expect({ type: standIn.type, scope: standIn.scope, key: standIn.key }).toEqual({
			type,
			scope,
			key,
		});
		const resource = artist("miles", "jazz");
		const { data } = decode(standIn, resource);
		expect(Buffer.from(toBinary(standIn.schema, data))).toEqual(
			Buffer.from(toBinary(ArtistSchema, create(ArtistSchema, { genre: "jazz" }))),
		);
	});

	it("may have a message of another name", () => {
		const standIn = standInType("music.v1.Artist", "cluster", "acme.music.v1.Performer");
		expect(standIn.scope).toBe(Scope.CLUSTER);
		const resource = resourceOf(standIn, { id: idOf(standIn, "miles") });
		expect(resource.data?.typeUrl).toMatch(/\/acme\.music\.v1\.Performer$/);
	});

	it.each(["Artist", "music.Artist", "music.v1.Artist.x", ""])("refuses the key %j", (key) => {
		expect(() => standInType(key, "namespace")).toThrow(
			`a stand-in needs the key of a type, such as catalog.v1.Service, got: "${key}"`,
		);
	});
});
