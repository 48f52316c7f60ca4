import { create } from "@bufbuild/protobuf";
import { NamespaceSchema, type Resource } from "@plinth/proto";
import { addFinalizer, deletionTimestampKey, idOf, Namespace, resourceOf } from "@plinth/resource";
import { CasFailure, type Mutation } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { referencesFinalizer } from "../shadow/shadow.ts";
import { oneDeployment } from "./things.fixture.ts";

/** A resource without references. */
const plain: Resource = resourceOf(Namespace, {
	id: { ...idOf(Namespace, "plain"), uid: "1" },
	data: create(NamespaceSchema),
});

function put(resource: Resource, stored?: Resource): Mutation {
	return { op: "put", resource, expectedVersion: stored?.version ?? "" };
}

/** A deployment that stores the resource, after it was replaced by `newest` without this store. */
async function replacedBy(newest: Resource) {
	const { lab, alpha } = await oneDeployment();
	const { resources } = await lab.run(alpha.store.commit([put(plain)]));
	const [stale] = resources;
	await lab.run(alpha.backend.commit([put(newest, stale)]));
	return { lab, alpha, stale };
}

function labeled(text: string): Resource {
	return { ...plain, metadata: { text } };
}

describe("a commit that is decided again", () => {
	it("succeeds if neither it nor the stored resource concerns references", async () => {
		const { lab, alpha, stale } = await replacedBy(labeled("theirs"));
		const { resources } = await lab.run(
			alpha.store.commit([put(labeled("first"), stale)], {
				rebase: (stored) => [put(labeled(`over ${stored?.metadata.text}`), stored)],
			}),
		);
		expect(resources[0]?.metadata).toEqual({ text: "over theirs" });
	});

	it("conflicts if the stored resource is referenced by now", async () => {
		const referenced = { ...plain, metadata: {} };
		addFinalizer(referenced, referencesFinalizer);
		const { lab, alpha, stale } = await replacedBy(referenced);
		const commit = alpha.store.commit([put(labeled("first"), stale)], {
			rebase: (stored) => [put(labeled("second"), stored)],
		});
		await expect(lab.run(commit)).rejects.toThrow(CasFailure);
	});

	it("conflicts if it now marks or deletes the resource", async () => {
		const { lab, alpha, stale } = await replacedBy(labeled("theirs"));
		const marked = { ...plain, metadata: { [deletionTimestampKey]: "2026-01-01T00:00:00Z" } };
		for (const rebase of [
			(stored: Resource | undefined) => [put(marked, stored)],
			(stored: Resource | undefined): readonly Mutation[] | undefined =>
				stored?.id && [{ op: "delete", id: stored.id, expectedVersion: stored.version }],
		]) {
			const commit = alpha.store.commit([put(labeled("first"), stale)], { rebase });
			await expect(lab.run(commit)).rejects.toThrow(CasFailure);
		}
	});
});
