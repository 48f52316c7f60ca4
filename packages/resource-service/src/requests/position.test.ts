import { Code, ConnectError } from "@connectrpc/connect";
import { idOf, typeOf } from "@plinth/resource";
import {
	decorateBackend,
	NotFound,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { PolicyAuthorizer } from "../access/policy-authorizer.ts";
import { Artist, artist } from "../demo.fixture.ts";
import { connections, directConnections, startService } from "../service.fixture.ts";
import { notBeforeHeader, positionHeader } from "./position.ts";

/** A server of a cluster that has applied nothing since version `applied` until somebody makes it catch up. */
function lagging(behind: { applied: number; catchUps: number }) {
	return (backend: StorageBackend) =>
		decorateBackend(backend, {
			async read(id) {
				const resource = await backend.read(id);
				if (Number(resource.version) > behind.applied) {
					throw new NotFound(id);
				}
				return resource;
			},
			async catchUp(signal, atLeast) {
				if (atLeast === undefined || Number(atLeast) > behind.applied) {
					behind.catchUps += 1;
					behind.applied = Number(await backend.catchUp(signal));
				}
				return String(behind.applied);
			},
		});
}

const id = idOf(Artist, "miles");

describe.each(directConnections)("a server that lags, %s", (connection) => {
	it("catches up with the position of a caller, once", async () => {
		const behind = { applied: Number.POSITIVE_INFINITY, catchUps: 0 };
		await using t = await startService(connection, { decorate: lagging(behind) });
		const { resource } = await t.client.write({ resource: artist("miles") });
		const position = resource?.version ?? "";
		behind.applied = Number(position) - 1;
		await expect(t.client.read({ id })).rejects.toMatchObject({ code: Code.NotFound });
		const headers = { [notBeforeHeader]: position };
		const read = await t.client.read({ id }, { headers });
		expect(read.resource?.version).toBe(position);
		await t.client.read({ id }, { headers });
		expect(behind.catchUps).toBe(1);
	});
});

describe.each(connections)("the position of a caller, %s", (connection) => {
	it("is returned by every unary call that names one, no older than what the response shows", async () => {
		await using t = await startService(connection);
		const positions: number[] = [];
		const options = {
			headers: { [notBeforeHeader]: "0" },
			onHeader: (headers: Headers) => positions.push(Number(headers.get(positionHeader))),
		};
		const { resource } = await t.client.write({ resource: artist("miles") }, options);
		const version = Number(resource?.version);
		await t.client.read({ id }, options);
		const list = await t.client.list({ type: Artist.type, tenancy: {} }, options);
		await t.client.listByOwner({ owner: resource?.id ?? id }, options);
		const deleted = await t.client.delete({ id }, options);
		expect(positions).toHaveLength(5);
		expect(positions.every((each) => each >= version)).toBe(true);
		expect(positions[2]).toBeGreaterThanOrEqual(Number(list.version));
		expect(positions[4]).toBeGreaterThanOrEqual(Number(deleted.version));
	});

	it("is returned with failures, and with the refusal of a position that the storage has not reached", async () => {
		await using t = await startService(connection);
		const positionOf = async (notBefore: string) => {
			const failure = await t.client
				.read({ id }, { headers: { [notBeforeHeader]: notBefore } })
				.catch(ConnectError.from);
			return [
				failure instanceof ConnectError && failure.code,
				failure instanceof ConnectError && failure.metadata.get(positionHeader),
			];
		};
		const list = await t.client.list({ type: Artist.type, tenancy: {} });
		expect(await positionOf("0")).toEqual([Code.NotFound, list.version]);
		expect(await positionOf("9999999999999999")).toEqual([Code.OutOfRange, list.version]);
	});

	it("comes with the key of a list that has more pages", async () => {
		await using t = await startService(connection);
		await t.client.write({ resource: artist("miles") });
		await t.client.write({ resource: artist("john") });
		const keys: (string | null)[] = [];
		const list = (pageToken: string, headers: Record<string, string>) =>
			t.client.list(
				{ type: Artist.type, tenancy: {}, pageSize: 1, pageToken },
				{ headers, onHeader: (fields: Headers) => keys.push(fields.get("x-plinth-pages")) },
			);
		const { nextPageToken } = await list("", { [notBeforeHeader]: "0" });
		await list(nextPageToken, { [notBeforeHeader]: "0" });
		await list("", {});
		expect(keys).toEqual([nextPageToken.split(".")[0], null, null]);
	});

	it("is not returned to a call that names none", async () => {
		await using t = await startService(connection);
		let position: string | null = "";
		await t.client.write(
			{ resource: artist("miles") },
			{
				onHeader: (headers) => {
					position = headers.get(positionHeader);
				},
			},
		);
		expect(position).toBeNull();
	});

	it("holds for the snapshot of a watch too", async () => {
		const behind = { applied: Number.POSITIVE_INFINITY, catchUps: 0 };
		await using t = await startService(connection, { decorate: lagging(behind) });
		const { resource } = await t.client.write({ resource: artist("miles") });
		behind.applied = 0;
		const headers = { [notBeforeHeader]: resource?.version ?? "" };
		for await (const { event } of t.client.watchList({ type: Artist.type }, { headers })) {
			expect(event.case).toBe("upsert");
			break;
		}
		expect(behind.catchUps).toBe(1);
	});

	it("holds for all watches of a set together, which a server refuses as a whole", async () => {
		await using t = await startService(connection);
		const list = await t.client.list({ type: Artist.type, tenancy: {} });
		const watches = [{ id: "a", request: { type: typeOf(Artist.type) } }];
		const headers = { [notBeforeHeader]: "999999" };
		const set = t.client.watchSet({ watches }, { headers })[Symbol.asyncIterator]();
		const failure = await set.next().catch(ConnectError.from);
		expect(failure).toMatchObject({ code: Code.OutOfRange });
		expect(failure instanceof ConnectError && failure.metadata.get(positionHeader)).toBe(
			list.version,
		);
	});

	it("can't be reached while the storage can't, so that the server is unavailable for a set too", async () => {
		await using t = await startService(connection, {
			decorate: (backend) =>
				decorateBackend(backend, {
					catchUp: async () => {
						throw new StorageUnavailable("no quorum");
					},
				}),
		});
		const headers = { [notBeforeHeader]: "999999" };
		const watches = [{ id: "a", request: { type: typeOf(Artist.type) } }];
		const streams: readonly AsyncIterable<unknown>[] = [
			t.client.watchSet({ watches }, { headers }),
			t.client.watchList({ type: Artist.type }, { headers }),
		];
		for (const stream of streams) {
			const failure = await stream[Symbol.asyncIterator]().next().catch(ConnectError.from);
			expect(failure).toMatchObject({ code: Code.Unavailable, rawMessage: "no quorum" });
		}
	});

	it("lets nobody make a server catch up who has no token", async () => {
		const behind = { applied: 0, catchUps: 0 };
		const authorizer = new PolicyAuthorizer();
		await using t = await startService(connection, { decorate: lagging(behind), authorizer });
		const before = behind.catchUps;
		const headers = { [notBeforeHeader]: "999" };
		const failure = await t.client.read({ id }, { headers }).catch(ConnectError.from);
		expect(failure).toMatchObject({ code: Code.Unauthenticated });
		expect(behind.catchUps).toBe(before);
	});
});
