// Gives every plot the page's colours, again when light and dark change, and shows one run's time lines at a time.
(function () {
  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }
  function dress() {
    var change = { 'font.color': color('--text'), 'hoverlabel.bgcolor': color('--panel'),
      'hoverlabel.font.color': color('--text'), 'legend.bgcolor': 'rgba(0,0,0,0)' };
    // A finger drags the page, not a zoom.
    change.dragmode = matchMedia('(pointer: coarse)').matches ? false : 'zoom';
    ['xaxis', 'yaxis'].forEach(function (axis) {
      change[axis + '.gridcolor'] = change[axis + '.zerolinecolor'] = change[axis + '.linecolor'] = color('--grid');
    });
    document.querySelectorAll('.js-plotly-plot').forEach(function (plot) { Plotly.relayout(plot, change); });
  }
  function choose(run) {
    document.querySelectorAll('.run').forEach(function (part) { part.hidden = part.id !== run; });
    document.querySelectorAll('#' + run + ' .js-plotly-plot').forEach(function (plot) { Plotly.Plots.resize(plot); });
  }
  dress();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', dress);
  var select = document.getElementById('choose-run');
  if (select) {
    select.addEventListener('change', function () { choose(select.value); });
    choose(select.value);
  }
})();
