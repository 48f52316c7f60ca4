import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { OriginSchema, type Resource, StatusSchema } from "@plinth/proto";
import { idOf, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { beforeEach, describe, expect, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";

const tenancy = { partition: "default", namespace: "default" };
const anywhere = { partition: "*", namespace: "*" };

/** A copy of a resource of the region us, in a partition that only us has, or in one that both have. */
function copyOf(name: string, partition: string): Resource {
	const id = idOf(Artist, name, { ...tenancy, partition }, newUlid(systemRuntime));
	const copy = resourceOf(Artist, { id: { ...id, region: "us" } });
	copy.generation = newUlid(systemRuntime);
	copy.origin = create(OriginSchema, { region: "us", uid: newUlid(systemRuntime), version: "7" });
	return copy;
}

describe.each(connections)("in the region eu, over %s, a copy from us", (connection) => {
	let t: TestService;

	/** There is a local miles, and copies of another miles and of ella. */
	beforeEach(async () => {
		t = await startService(connection, { region: "eu" });
		await t.client.write({ resource: artist("miles") });
		await t.backend.commit(
			[copyOf("miles", "default"), copyOf("ella", "acme")].map((resource) => ({
				...{ op: "put", resource, expectedVersion: "" },
			})),
		);
		return () => t[Symbol.asyncDispose]();
	});

	const idIn = (region: string | undefined, name = "miles", partition = "default") => ({
		...idOf(Artist, name, { ...tenancy, partition }),
		...(region !== undefined && { region }),
	});
	const listed = async (region: string, where = anywhere) => {
		const { resources } = await t.client.list({ type: Artist.type, tenancy: where, region });
		return resources.map(
			({ id }) => `${id?.region ?? "here"} ${id?.tenancy?.partition} ${id?.name}`,
		);
	};

	it("is read by its region, and the local resource of its name by none, or by its own", async () => {
		for (const region of [undefined, "", "eu"]) {
			const { resource } = await t.client.read({ id: idIn(region) });
			expect(resource?.origin).toBeUndefined();
			expect(resource?.id?.region).toBeUndefined();
		}
		const { resource } = await t.client.read({ id: idIn("us") });
		expect(resource?.id?.region).toBe("us");
		expect(resource?.origin?.version).toBe("7");
	});

	it("is not found in another region, and needs no partition here", async () => {
		const notFound = [Code.NotFound, "resource not found"] as const;
		await expectRefusal(t.client.read({ id: idIn("asia") }), ...notFound);
		await expectRefusal(t.client.read({ id: idIn("us", "ada", "acme") }), ...notFound);
		expect((await t.client.read({ id: idIn("us", "ella", "acme") })).resource?.id?.name).toBe(
			"ella",
		);
	});

	it("is listed only if its region or all regions are requested", async () => {
		expect(await listed("")).toEqual(["here default miles"]);
		expect(await listed("eu")).toEqual(["here default miles"]);
		expect(await listed("us")).toEqual(["us acme ella", "us default miles"]);
		expect(await listed("us", tenancy)).toEqual(["us default miles"]);
		expect(await listed("asia")).toEqual([]);
		const all = ["here default miles", "us acme ella", "us default miles"];
		expect(await listed("*")).toEqual(all);
		const paged: string[] = [];
		let pageToken = "";
		do {
			const page = { type: Artist.type, tenancy: anywhere, region: "*", pageSize: 1, pageToken };
			const { resources, nextPageToken } = await t.client.list(page);
			paged.push(
				...resources.map(
					({ id }) => `${id?.region ?? "here"} ${id?.tenancy?.partition} ${id?.name}`,
				),
			);
			pageToken = nextPageToken;
		} while (pageToken !== "");
		expect(paged).toEqual(all);
	});

	it("belongs to no page token of another region", async () => {
		const first = { type: Artist.type, tenancy: anywhere, region: "us", pageSize: 1 };
		const { nextPageToken: pageToken } = await t.client.list(first);
		await expectRefusal(
			t.client.list({ ...first, region: "*", pageToken }),
			Code.InvalidArgument,
			"page_token invalid: belongs to another list",
		);
	});

	it("is on one page of what its owner owns", async () => {
		const { resource } = await t.client.write({ resource: artist("owner") });
		const owner = resource?.id;
		const copies = ["miles", "ella"].map((name) => ({
			...copyOf(name, "later"),
			...(owner && { owner }),
		}));
		await t.backend.commit(
			copies.map((each) => ({ op: "put", resource: each, expectedVersion: "" })),
		);
		await t.client.write({ resource: { ...artist("ada"), ...(owner && { owner }) } });
		const paged: string[] = [];
		let pageToken = "";
		do {
			const page = await t.client.listByOwner({ ...(owner && { owner }), pageSize: 1, pageToken });
			paged.push(...page.resources.map(({ id }) => `${id?.region ?? "here"} ${id?.name}`));
			pageToken = page.nextPageToken;
		} while (pageToken !== "" && paged.length < 10);
		expect(paged).toEqual(["here ada", "us ella", "us miles"]);
	});

	it("is sent to watches of its region and of all regions", async () => {
		const seen = async (region: string) => {
			const abort = new AbortController();
			const names: string[] = [];
			const request = { type: Artist.type, region };
			for await (const { event } of t.client.watchList(request, { signal: abort.signal })) {
				if (event.case !== "upsert") {
					abort.abort();
					break;
				}
				names.push(
					`${event.value.resource?.id?.region ?? "here"} ${event.value.resource?.id?.name}`,
				);
			}
			return names;
		};
		expect(await seen("")).toEqual(["here miles"]);
		expect(await seen("us")).toEqual(["us ella", "us miles"]);
		expect(await seen("*")).toEqual(["here miles", "us ella", "us miles"]);
	});

	it("can't be written, deleted or reported on: the refusal names its region", async () => {
		const refused = [
			Code.FailedPrecondition,
			"demo.v2.Artist default/default/miles (us) is read-only here: write it in its region, us",
		] as const;
		const { resource } = await t.client.read({ id: idIn("us") });
		const id = resource?.id;
		for (const each of [resourceOf(Artist, { id: idIn("us") }), ...(resource ? [resource] : [])]) {
			await expectRefusal(t.client.write({ resource: each }), ...refused);
			await expectRefusal(t.client.mutateAndValidate({ resource: each }), ...refused);
		}
		await expectRefusal(t.client.delete({ id: idIn("us") }), ...refused);
		const status = create(StatusSchema, {});
		await expectRefusal(t.client.writeStatus({ ...(id && { id }), key: "me", status }), ...refused);
		await expectRefusal(
			t.client.write({ resource: { ...artist("ella"), ...(id && { owner: id }) } }),
			Code.InvalidArgument,
			"resource.owner invalid: a copy can't own resources",
		);
		expect((await t.client.write({ resource: artist("miles") })).resource?.id?.region).toBe(
			undefined,
		);
	});

	it("has a well-formed region", async () => {
		const malformed = (path: string) =>
			[Code.InvalidArgument, new RegExp(`^${path} invalid: `)] as const;
		await expectRefusal(t.client.read({ id: idIn("US west") }), ...malformed("id.region"));
		await expectRefusal(t.client.read({ id: idIn("*") }), ...malformed("id.region"));
		const list = { type: Artist.type, tenancy: anywhere, region: "~us" };
		await expectRefusal(t.client.list(list), ...malformed("region"));
	});
});
