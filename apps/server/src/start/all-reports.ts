import type { ControllerReports } from "@plinth/controller";

/**
 * The reports of several managers as those of one.
 *
 * @param managers - those that run now; the dependencies are those of the first one.
 */
export function allReports(
	managers: () => readonly [ControllerReports, ...ControllerReports[]],
): ControllerReports {
	return {
		state() {
			const [first, ...others] = managers();
			const { controllers, ...state } = first.state();
			const more = others.flatMap((each) => each.state().controllers);
			return { ...state, controllers: [...controllers, ...more] };
		},
		work(controller, limit) {
			for (const manager of managers()) {
				const work = manager.work(controller, limit);
				if (work !== undefined) {
					return work;
				}
			}
			return undefined;
		},
		reconcilesOf: (id) => managers().flatMap((each) => each.reconcilesOf(id)),
		graph: () => managers()[0].graph(),
	};
}
