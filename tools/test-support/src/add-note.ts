import type { TestContext } from "vitest";

declare module "vitest" {
	interface TaskMeta {
		note?: string;
	}
}

/**
 * Says what is to be done although a test passes. The last lines of `pnpm test` show it, with the test's file
 * (`scripts/test-report.ts`).
 */
export function addNote({ task }: TestContext, note: string): void {
	task.meta.note = note;
}
