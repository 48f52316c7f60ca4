import { create } from "@bufbuild/protobuf";
import { Lifecycle, TaskSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { expect, it } from "vitest";
import { oneDeployment, thing, to } from "../lab/things.fixture.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow, type StoredShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { LostDeployments } from "./lost-deployments.ts";

it("the tasks for a deleted deployment stay while a deletion is being checked, which needs the shadow unchanged", async () => {
	const { lab, alpha, id } = await oneDeployment();
	await lab.run(alpha.write(thing("t")));
	await lab.run(alpha.write(thing("w", { needs: to("t") })));
	const { context, store } = alpha.current.constraints;
	const name = shadowName(keyOf(id("w"), ""));
	const change = (fields: Partial<StoredShadow["shadow"]>) =>
		updateShadow(context, name, ({ shadow }) => ({ ...shadow, ...fields }));
	const confirm = create(TaskSchema, {
		task: { case: "confirm", value: { deployment: { uid: "01GONE" } } },
	});
	await lab.run(change({ tasks: [confirm] }));
	const read = () => lab.run(readShadow(alpha.backend, name));
	let checked: StoredShadow | undefined;
	const environment = {
		...context.environment,
		isDeleted: async () => {
			await change({ lifecycle: Lifecycle.CHECKING });
			checked = await readShadow(alpha.backend, name);
			return true;
		},
	};
	const lost = new LostDeployments({ ...context, environment }, store);
	const before = await read();
	await lab.run(lost.check(before ?? expect.unreachable()));
	expect(checked?.shadow.lifecycle).toBe(Lifecycle.CHECKING);
	expect((await read())?.version).toBe(checked?.version);
	await lab.run(change({ lifecycle: Lifecycle.ACTIVE }));
	environment.isDeleted = async () => true;
	await lab.run(lost.check((await read()) ?? expect.unreachable()));
	expect((await read())?.shadow.tasks).toEqual([]);
});
