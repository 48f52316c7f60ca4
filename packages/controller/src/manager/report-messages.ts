import { create, toBinary } from "@bufbuild/protobuf";
import {
	type ControllerReport,
	ControllerReportSchema,
	ReportControllersRequestSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { controllerMessage, maxKeys, reconcileInit } from "./controller-messages.ts";
import type { ControllerReports } from "./controller-service.ts";

/** So many keys of each kind are reported of each controller. */
const reportedKeys = 20;

/** A larger report is sent without the keys that controllers work on, in bytes. */
const fullReportBytes = 96 * 1024;

/** What a process that is no server reports about its controllers: see `ControllerService.ReportControllers`. */
export function reportMessages(
	manager: Pick<ControllerReports, "state" | "work">,
): ControllerReport[] {
	const full = manager.state().controllers.map((state) => {
		const { failing = [], running = [] } = manager.work(state.name, reportedKeys) ?? {};
		const controller = controllerMessage(state, undefined);
		controller.overdue = controller.overdue.slice(0, maxKeys);
		return create(ControllerReportSchema, {
			controller,
			failing: failing.map((key) => reconcileInit(state.name, key, undefined)),
			running: running.map((key) => reconcileInit(state.name, key, undefined)),
		});
	});
	const { length } = toBinary(
		ReportControllersRequestSchema,
		create(ReportControllersRequestSchema, { controllers: full }),
	);
	if (length <= fullReportBytes) {
		return full;
	}
	return full.flatMap(({ controller }) =>
		controller === undefined
			? []
			: create(ControllerReportSchema, {
					controller: { ...controller, overdue: [], stillRunning: [] },
				}),
	);
}
