/**
 * The tests of what callers see of the resource service, for a connection to it that another package makes. Not published.
 */
import { type Connect, connectOnlyBy } from "./service.fixture.ts";

export type { Connect } from "./service.fixture.ts";

/** Declares the tests, over this connection: called once, while the tests of a file are collected. */
export async function declareSuite(connection: string, connect: Connect): Promise<void> {
	connectOnlyBy(connection, connect);
	await import("./behaviors.test.ts");
	await import("./refusals.test.ts");
	await import("./access/authorization.test.ts");
	await import("./errors/storage-failure.test.ts");
	await import("./read/list-by-owner.test.ts");
	await import("./read/watch-list.test.ts");
	await import("./read/watch-set.test.ts");
	await import("./requests/limits.test.ts");
	await import("./requests/position.test.ts");
	await import("./tenancy/tenancy-removal.test.ts");
	await import("./validation/message-rules.test.ts");
	await import("./write/asynchronous-hooks.test.ts");
}
