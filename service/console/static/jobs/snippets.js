// What a page shows, as commands to run elsewhere: with the Python client, or with curl. They read the key
// from the environment variable CAIRN_KEY, so that it is never part of a text that is passed on.

const python = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const KEY = '-H "Authorization: Bearer $CAIRN_KEY"';

function client() {
  return [
    "from cairn_client import Client",
    "",
    `client = Client(${python(location.origin)})  # uses the key in CAIRN_KEY, or that of \`cairn login\``,
  ];
}

// A request without what is said by default.
function told({
  dataset,
  k,
  epsilon,
  delta,
  algorithm,
  objective,
  options,
  sites,
  columns,
  weights,
  scaling,
  rehearsal,
}) {
  return {
    dataset,
    k,
    epsilon,
    ...(delta !== undefined && { delta }),
    ...(algorithm && algorithm !== "auto" && { algorithm }),
    ...(objective && objective !== "means" && { objective }),
    ...(options && Object.keys(options).length && { options }),
    ...(sites && { sites }),
    ...(columns && { columns }),
    ...(weights && { weights }),
    ...(scaling && { scaling }),
    ...(rehearsal && { rehearsal }),
  };
}

// A range of k is a tuple in Python.
const pythonClusters = (k) => (typeof k === "number" ? python(k) : `(${k.from}, ${k.to})`);

function pythonOptions(options) {
  if (typeof options === "string") return python(options);
  return `{${Object.entries(options)
    .map(([name, value]) => `${python(name)}: ${python(value)}`)
    .join(", ")}}`;
}

const WRITTEN = { k: pythonClusters, options: pythonOptions, weights: pythonOptions };

export function requestAsPython(request) {
  const { dataset, ...rest } = told(request);
  const given = Object.entries(rest).map(([name, value]) => `${name}=${(WRITTEN[name] ?? python)(value)}`);
  return [
    ...client(),
    `result = client.dataset(${python(dataset)}).cluster(${given.join(", ")})`,
    "print(result.centres)",
    "",
  ].join("\n");
}

export function requestAsCurl(request) {
  const address = quoted(`${location.origin}/v1/jobs`);
  const body = quoted(JSON.stringify(told(request)));
  return `curl -sS ${address} ${KEY} -H 'Content-Type: application/json' \\\n  -d ${body}\n`;
}

// `k` is that of a job that left it open, else nothing.
export function resultAsPython(job, k) {
  return [
    ...client(),
    `result = client.job(${python(job.id)}).result()${k ? `.at(${k})` : ""}`,
    "print(result.centres)",
    "",
  ].join("\n");
}

export function resultAsCurl(job, k) {
  return `curl -sS ${quoted(`${location.origin}/v1/jobs/${job.id}/result${k ? `?k=${k}` : ""}`)} ${KEY}\n`;
}
