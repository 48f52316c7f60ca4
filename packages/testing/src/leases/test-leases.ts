import type { Fence, LeaseManager } from "@plinth/runtime";

/** Leases of a test server: those of `LocalLeases`, or any that can do as much. */
export interface TestLeases extends LeaseManager {
	/** Whether a write that carries the fence may land. */
	isCurrent(fence: Fence): boolean;
	/** Takes the lease away from its holder, or sees to it that it is lost. */
	revoke(name: string): void;
}
