import {
	createHashHistory,
	createRootRoute,
	createRoute,
	createRouter,
	lazyRouteComponent,
} from "@tanstack/react-router";
import { Failed } from "./failed.tsx";
import { NotFound } from "./not-found.tsx";
import { parseResourceSearch, parseTableSearch } from "./search.ts";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const overview = createRoute({
	getParentRoute: () => root,
	path: "/",
	component: lazyRouteComponent(() => import("../overview/overview-page.tsx"), "OverviewPage"),
});

const types = createRoute({
	getParentRoute: () => root,
	path: "/types",
	component: lazyRouteComponent(() => import("../table/types-page.tsx"), "TypesPage"),
});

const type = createRoute({
	getParentRoute: () => root,
	path: "/types/$type",
	validateSearch: parseTableSearch,
	component: lazyRouteComponent(() => import("../table/table-page.tsx"), "TablePage"),
});

const resource = createRoute({
	getParentRoute: () => root,
	path: "/types/$type/$name",
	validateSearch: parseResourceSearch,
	component: lazyRouteComponent(() => import("../resource/resource-page.tsx"), "ResourcePage"),
});

const edit = createRoute({
	getParentRoute: () => root,
	path: "/types/$type/$name/edit",
	validateSearch: parseResourceSearch,
	component: lazyRouteComponent(() => import("../edit/edit-page.tsx"), "EditPage"),
});

const create = createRoute({
	getParentRoute: () => root,
	path: "/create/$type",
	validateSearch: parseResourceSearch,
	component: lazyRouteComponent(() => import("../edit/create-page.tsx"), "CreatePage"),
});

const graph = createRoute({
	getParentRoute: () => root,
	path: "/types/$type/$name/graph",
	validateSearch: parseResourceSearch,
	component: lazyRouteComponent(() => import("../graph/graph-page.tsx"), "GraphPage"),
});

const controllers = createRoute({
	getParentRoute: () => root,
	path: "/controllers",
	component: lazyRouteComponent(
		() => import("../controllers/controllers-page.tsx"),
		"ControllersPage",
	),
});

const flow = createRoute({
	getParentRoute: () => root,
	path: "/flow",
	component: lazyRouteComponent(() => import("../flow/flow-page.tsx"), "FlowPage"),
});

const controller = createRoute({
	getParentRoute: () => root,
	path: "/controllers/$name",
	component: lazyRouteComponent(
		() => import("../controllers/controller-page.tsx"),
		"ControllerPage",
	),
});

/**
 * The routes of the page. They are in the fragment of the URL: the server serves one page, below any prefix, and its logs
 * contain no names of resources.
 */
export const router = createRouter({
	routeTree: root.addChildren([
		...[overview, types, type, resource, edit, create, graph],
		...[controllers, controller, flow],
	]),
	history: createHashHistory(),
	defaultPreload: "intent",
	defaultErrorComponent: Failed,
});

declare module "@tanstack/react-router" {
	interface Register {
		router: typeof router;
	}
}
