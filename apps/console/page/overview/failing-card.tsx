import { ControllerService } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { ControllerOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useConnection } from "../app/connection.ts";
import { plural } from "../model/format.ts";
import { Card } from "../parts/card.tsx";
import { ReconcileKey } from "../parts/reconcile-key.tsx";

/** The failing keys of so many controllers are shown, and so many of each. */
const [mostControllers, mostKeys] = [5, 5];

/** The resources whose reconciles fail, each with its last error. Nothing if none fails. */
export function FailingCard({
	controllers,
	takenAtMs,
}: {
	readonly controllers: readonly ControllerOverview[];
	/** The time of the overview, with which the keys are read again. */
	readonly takenAtMs: number | undefined;
}) {
	const connection = useConnection();
	const failing = controllers
		.filter(({ controller }) => (controller?.requests?.failing ?? 0) > 0)
		.map(({ controller }) => controller?.name ?? "");
	const { data = [] } = useQuery({
		queryKey: ["failing", failing.join(), takenAtMs],
		enabled: failing.length > 0,
		placeholderData: keepPreviousData,
		queryFn: ({ signal }) =>
			Promise.all(
				failing.slice(0, mostControllers).map(async (name) => {
					const client = connection.client(ControllerService);
					return { name, ...(await client.getController({ name }, { signal })) };
				}),
			),
	});
	if (failing.length === 0) {
		return null;
	}
	return (
		<Card title="Failing" wide>
			<ul className="list">
				{data.flatMap((each) =>
					each.failing.slice(0, mostKeys).map(({ key, failure, server }) => (
						<li key={`${each.name} ${server} ${key}`}>
							<Link to="/controllers/$name" params={{ name: each.name }}>
								{each.name}
							</Link>{" "}
							<ReconcileKey of={key} />{" "}
							<span className="muted">{plural(failure?.attempts ?? 0, "attempt")}</span>
							<p className="bad-text">{failure?.message}</p>
						</li>
					)),
				)}
			</ul>
		</Card>
	);
}
