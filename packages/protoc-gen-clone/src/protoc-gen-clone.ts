#!/usr/bin/env node
import { runNodeJs } from "@bufbuild/protoplugin";
import { protocGenClone } from "./plugin.ts";

runNodeJs(protocGenClone);
