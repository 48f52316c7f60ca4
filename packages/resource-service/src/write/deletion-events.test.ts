import { Code } from "@connectrpc/connect";
import { type EventRecord, finalizersKey, idOf, Namespace } from "@plinth/resource";
import { decorateBackend, Refused } from "@plinth/storage";
import { expect, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { startService } from "../service.fixture.ts";

async function service(refuses = false) {
	const events: EventRecord[] = [];
	const { client } = await startService("in-process", {
		events: { record: (event) => void events.push(event) },
		decorate: (backend) =>
			decorateBackend(backend, {
				commit: (mutations, options) => {
					if (refuses && mutations.some(({ op }) => op === "delete")) {
						throw new Refused(Code.FailedPrecondition, "referenced by the secret song");
					}
					return backend.commit(mutations, options);
				},
			}),
	});
	return { client, events };
}

const miles = { id: idOf(Artist, "miles") };

it("a deletion that waits for finalizers is an event of the resource, once", async () => {
	const { client, events } = await service();
	const resource = artist("miles");
	resource.metadata[finalizersKey] = "backup billing";
	await client.write({ resource });
	await client.delete({ ...miles, dryRun: true });
	await client.delete(miles);
	await client.delete(miles);
	expect(events).toMatchObject([
		{
			...{ reason: "DeletionWaits", source: "plinth" },
			resource: { name: "miles" },
			message: "deletion requested by anyone; it waits for backup, billing",
		},
	]);
});

it("a deletion that ends at once is none", async () => {
	const { client, events } = await service();
	await client.write({ resource: artist("miles") });
	await client.delete(miles);
	await client.delete(miles);
	expect(events).toEqual([]);
});

it("a deletion that is refused is one, which does not repeat what only its caller may read", async () => {
	const { client, events } = await service(true);
	await client.write({ resource: artist("miles") });
	const refusal = { code: Code.FailedPrecondition };
	await expect(client.delete({ ...miles, dryRun: true })).rejects.toMatchObject(refusal);
	expect(events).toEqual([]);
	await expect(client.delete(miles)).rejects.toMatchObject(refusal);
	expect(events).toMatchObject([{ reason: "DeletionRefused", severity: "warning" }]);
	expect(events[0]?.message).not.toContain("secret");
});

it("a deletion that the caller may not request, or that names another version, is none", async () => {
	const { client, events } = await service();
	await client.write({ resource: artist("miles") });
	await expect(client.delete({ ...miles, version: "1" })).rejects.toThrow();
	await expect(client.delete({ id: idOf(Namespace, "default") })).rejects.toThrow();
	expect(events).toEqual([]);
});
