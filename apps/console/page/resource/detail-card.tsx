import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Card } from "../parts/card.tsx";
import { ErrorNotice } from "../parts/error-notice.tsx";

/** A card with what was read about a resource, or why it can't be read. */
export function DetailCard<Detail>({
	title,
	what,
	query: { data, error, refetch },
	wide = false,
	aside,
	children,
}: {
	readonly title: string;
	/** What is read, for errors. */
	readonly what: string;
	readonly query: UseQueryResult<Detail>;
	readonly wide?: boolean;
	readonly aside?: (detail: Detail) => ReactNode;
	readonly children: (detail: Detail) => ReactNode;
}) {
	return (
		<Card title={title} wide={wide} aside={data !== undefined && aside?.(data)}>
			{error !== null ? (
				<ErrorNotice error={error} what={what} onRetry={() => void refetch()} />
			) : data === undefined ? (
				<p className="muted">Loading…</p>
			) : (
				children(data)
			)}
		</Card>
	);
}
