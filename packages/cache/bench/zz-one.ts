import { performance } from "node:perf_hooks";
import { makeDataSet, labelReference, genreReference, pathOf } from "/work/main/packages/cache/bench/data-set.ts";
import { PlinthCache } from "/work/main/packages/cache/bench/plinth-cache.ts";
import { BareMaps } from "/work/main/packages/cache/bench/bare-maps.ts";
const size = Number(process.argv[2]), idx = Number(process.argv[3]) as 0|1|5;
const which = process.argv[4] ?? "both"; const rounds = Number(process.argv[5] ?? 3);
let t=performance.now();
const data = makeDataSet(size);
console.log("data", Math.round(performance.now()-t));
const labels = Array.from({length: Math.min(size/10,20000)},(_, i)=>labelReference((i*7919)%(size/10)));
const genres = Array.from({length: Math.min(size/1000,500)},(_, i)=>genreReference((i*7919)%(size/1000)));
const paths = Array.from({length: Math.min(size,50000)},(_, i)=>pathOf((i*7919)%size));
const best: any = {};
for (let r=0;r<rounds;r++) for (const [name, make] of Object.entries({bare:()=>new BareMaps(idx), cache:()=>new PlinthCache(idx)})) {
  if (which!=="both" && which!==name) continue;
  if (size>=100000) (globalThis as any).gc?.();
  const b = best[name] ??= {};
  const time=(op:string,n:number,f:()=>unknown)=>{const s=performance.now(); f(); const ns=(performance.now()-s)*1e6/n; b[op]=Math.min(b[op]??Infinity, Math.round(ns)); };
  const c = make();
  time("insert", size, ()=>c.insertAll(data.items));
  time("get", size, ()=>c.getAll(data.ids));
  time("get", size, ()=>c.getAll(data.ids));
  if (idx>0) { time("list10first", labels.length, ()=>c.listLabels(labels)); time("list10", labels.length, ()=>c.listLabels(labels));}
  if (idx===5) { time("list1000first", genres.length, ()=>c.listGenres(genres)); time("list1000", genres.length, ()=>c.listGenres(genres)); time("parents", paths.length, ()=>c.parents(paths)); }
  time("replace", size, ()=>c.insertAll(data.newer));
  time("delete", size, ()=>c.deleteAll(data.ids));
  if (r === 0) console.log(name, JSON.stringify(b));
}
for (const n in best) console.log(n.padEnd(6), JSON.stringify(best[n]));
