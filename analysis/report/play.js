// Plays each map of the page through its run. The data beside a map comes from play.c; text is set as text, never as markup.
document.querySelectorAll('figure.swarm').forEach(function (figure) {
  var data = JSON.parse(figure.querySelector('.frames').textContent);
  if (!data.frames) return;
  var slider = figure.querySelector('input'), button = figure.querySelector('button'), timer = 0;
  var dots = [], wires = [], layer = figure.querySelector('.wires');
  figure.querySelectorAll('.worker').forEach(function (dot) { dots[dot.dataset.w] = dot; });
  var totals = [0, 0, 0];
  data.wires.forEach(function (wire) { for (var c = 0; c < 3; c++) totals[c] += wire[2 + c]; });
  data.wires.forEach(function (wire) {
    var a = dots[wire[0]], b = dots[wire[1]];
    if (!a || !b) return;
    a = a.querySelector('circle'); b = b.querySelector('circle');
    var line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    ['cx', 'cy'].forEach(function (at, i) {
      line.setAttribute('xy'[i] + '1', a.getAttribute(at));
      line.setAttribute('xy'[i] + '2', b.getAttribute(at));
    });
    layer.appendChild(line);
    wires.push({ from: wire[0], to: wire[1], part: [0, 1, 2].map(function (c) { return totals[c] ? wire[2 + c] / totals[c] : 0; }), line: line });
  });
  var most = Math.max.apply(null, data.pipeline.concat(data.sync)), strongest = 0;
  wires.forEach(function (w) { strongest = Math.max(strongest, w.part[0], w.part[1]); });

  function last(list, frame) { // the newest entry that is not after the frame
    var found = null;
    list.forEach(function (entry) { if (entry[0] <= frame) found = entry; });
    return found;
  }
  function amount(bytes) {
    var units = ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'], i = 0;
    while (bytes >= 1000 && i < 4) { bytes /= 1000; i++; }
    return bytes.toPrecision(3) + ' ' + units[i];
  }
  function here(worker, frame) { return data.did[worker] && data.did[worker][frame] !== 'x'; }

  function paintWires(frame) {
    wires.forEach(function (w) {
      var rate = [data.pipeline[frame], data.sync[frame]], best = 0, kind = 'p';
      if (here(w.from, frame) && here(w.to, frame)) {
        [0, 1].forEach(function (c) {
          var share = most && strongest ? rate[c] / most * w.part[c] / strongest : 0;
          if (share > best) { best = share; kind = c ? 'y' : 'p'; }
        });
        if (w.part[2] > 0 && data.did[w.to][frame] === 'd') { best = 1; kind = 'd'; }
      }
      w.line.dataset.t = kind;
      w.line.style.strokeOpacity = best ? 0.15 + 0.85 * Math.sqrt(best) : 0;
    });
  }
  function show(frame) {
    var alive = 0, loss = last(data.losses, frame), event = last(data.events, frame);
    dots.forEach(function (dot, worker) {
      var did = data.did[worker][frame], stage = last(data.stages[worker], frame), label = dot.querySelector('text');
      alive += did !== 'x';
      dot.dataset.s = did;
      dot.firstChild.style.fillOpacity = 'xids'.indexOf(did) >= 0 ? 1 : 0.4 + 0.6 * data.busy[worker][frame] / 9;
      if (label) label.textContent = did === 'x' ? '\u00d7' : stage && stage[1] >= 0 ? stage[1] : '';
    });
    paintWires(frame);
    figure.querySelector('output').textContent = ((frame + 1) * data.time / data.frames).toPrecision(3) + ' ' + data.unit;
    figure.querySelector('.now').textContent = alive + ' of ' + dots.length + ' workers are there; ' +
      amount(data.pipeline[frame]) + ' between stages, ' + amount(data.sync[frame]) + ' in reductions' +
      (loss ? '; round ' + loss[1] + (loss[2] === null ? '' : ', loss ' + loss[2].toPrecision(3)) : '') +
      (event ? '; last: ' + event[1] : '');
  }
  function stop() { clearInterval(timer); timer = 0; button.textContent = 'Play'; }
  slider.max = data.frames - 1;
  slider.addEventListener('input', function () { show(+slider.value); });
  button.addEventListener('click', function () {
    if (timer) return stop();
    if (+slider.value === data.frames - 1) slider.value = 0;
    button.textContent = 'Stop';
    timer = setInterval(function () {
      slider.value = +slider.value + 1;
      show(+slider.value);
      if (+slider.value === data.frames - 1) stop();
    }, 70);
  });
  figure.classList.add('playable');
  show(0);
});
