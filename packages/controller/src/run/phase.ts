/**
 * The phase of a controller. A run passes through the phases of the second line, and can enter `stopping`
 * from any of them:
 *
 *   created ─▶ waiting-for-lease ─▶
 *              initializing ─▶ priming ─▶ running ─▶ stopping
 *          ─▶ stopped, or backing-off ─▶ waiting-for-lease or initializing again
 *
 * Mappers and reconcilers run only in `running`, which is entered when all priming watches have ended.
 */
export type Phase =
	| "created"
	| "waiting-for-lease"
	| "initializing"
	| "priming"
	| "running"
	| "stopping"
	| "backing-off"
	| "stopped";
